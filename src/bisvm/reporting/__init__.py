"""The report on a fitted model: one HTML file that needs nothing else.

May import `plots`, `tables`, `estimators` and what these may import. A new section goes
into the template `page.html`, or into `classes.html` or `numbers.html` for one kind of
target. Its facts go into `facts.py` or `numbers.py`.

The template escapes all text from the data (autoescape).
"""

from bisvm.reporting.writing import report

__all__ = ["report"]
