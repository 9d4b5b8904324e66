"""The report on a fitted model: one HTML file that needs nothing else.

May import `plots`, `tables`, `estimators` and what these may import. A new section goes
into the template `page.html`, or `classes.html` and `numbers.html` for one kind of
target, and the facts that it tells into `facts.py` or `numbers.py`.

The template escapes all text from the data (autoescape).
"""

from bisvm.reporting.writing import report

__all__ = ["report"]
