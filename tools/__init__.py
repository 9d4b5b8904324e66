"""Tools for those who work on the library; they are no part of the package."""
