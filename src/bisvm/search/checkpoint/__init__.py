"""Checkpoints: every evaluation of a run on file, and how a run is resumed from them.

May import `bilevel` and `data`. What a run must remember is a field of a frozen data
class (`records.py`).

A checkpoint is one SQLite file, a table from question to answer (`files.py`). A run
that is started again asks the same questions in the same order, and is answered from
the table as long as there are answers. `fingerprint.py` tells one run from another.
"""

from bisvm.search.checkpoint.files import Answers, Checkpoint, open_checkpoint
from bisvm.search.checkpoint.fingerprint import described, digest
from bisvm.search.checkpoint.records import packed, unpacked

__all__ = [
    "Answers",
    "Checkpoint",
    "described",
    "digest",
    "open_checkpoint",
    "packed",
    "unpacked",
]
