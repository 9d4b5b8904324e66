"""Packages that only some uses need."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def optional_module(name: str, needed_for: str, install: str) -> ModuleType:
    """Import a module of an optional package, or say how to install it.

    needed_for : what needs it, a plural such as "Plots"
    install : name of the package for pip
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise not_installed(needed_for, install) from error


def not_installed(needed_for: str, install: str) -> ImportError:
    """Return the error that says what a missing package is for."""
    return ImportError(
        f"{needed_for} need {install}, which is not installed: pip install {install}"
    )
