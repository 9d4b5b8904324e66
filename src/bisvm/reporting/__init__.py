"""The report on a fitted model: one HTML file that needs nothing else.

May import `plots`, `tables`, `estimators` and what these may import. A new section goes
into `sections.py`, and the facts that it tells into `facts.py`.

Whatever comes from data passes `markup.escape`; there is no other way onto the page.
"""

from bisvm.reporting.writing import report

__all__ = ["report"]
