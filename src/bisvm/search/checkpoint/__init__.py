"""Checkpoints: every evaluation of a run on file, and how a run is resumed from them.

May import `bilevel` and `data`. What a run must remember is a field of a frozen data
class (`records.py`).

A checkpoint is a file of lines (`lines.py`): which run it is, then one line for every
evaluation of the upper level. A run that is started again asks the same questions in
the same order; `Journal` answers them from the file as long as there are lines. What
the next evaluation takes over from the previous one is in files beside it
(`states.py`).
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
