"""A report on a fitted model: one HTML file that needs nothing else.

`report` gathers what is to be told (`facts.py`) and writes it (`page.py`). Whatever
comes from data passes `markup.escape`; there is no other way onto the page.
"""

from bisvm.reporting.writing import report

__all__ = ["report"]
