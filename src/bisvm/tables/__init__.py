"""Tables from files, prepared for a machine.

May import `core`. A new file format is read in `reading.py`; a new type of column is
added in `columns.py` and `preparing.py`.

`read_table` reads a file into a `Table` (`table.py`). `pipeline_for` puts the
preparation of the columns in front of an estimator: types, missing values, scales,
categories; `doubtful.py` says which columns it does not use.

`text.py` reads text, which spreadsheets (`sources.py`) and JSON (`objects.py`) become:
`lines.py` finds separator, title and footnotes, `header.py` the names, `numbers.py` and
`units.py` read numbers, `dates.py` dates and times. `checks.py` looks for leaks and
other problems. `TableFormat` is kept with the model, and `matching.py` reads new files
by it.
"""

from bisvm.tables.checks import TableWarning, check_table
from bisvm.tables.columns import ColumnTypes
from bisvm.tables.errors import ColumnWarning, DataError
from bisvm.tables.format import TableFormat
from bisvm.tables.preparing import pipeline_for
from bisvm.tables.reading import read_table
from bisvm.tables.table import Table, check_columns
from bisvm.tables.target import hold_out, split_target, take_groups

__all__ = [
    "ColumnTypes",
    "ColumnWarning",
    "DataError",
    "Table",
    "TableFormat",
    "TableWarning",
    "check_columns",
    "check_table",
    "hold_out",
    "pipeline_for",
    "read_table",
    "split_target",
    "take_groups",
]
