"""Fits that survive their process: a table from question to answer, in one file.

`files` is the table, `records` writes and reads frozen values as a whole, and
`fingerprint` tells one fit from another.
"""

from bisvm.checkpoint.files import Answers, Checkpoint, open_checkpoint
from bisvm.checkpoint.fingerprint import described, digest
from bisvm.checkpoint.records import packed, unpacked

__all__ = [
    "Answers",
    "Checkpoint",
    "described",
    "digest",
    "open_checkpoint",
    "packed",
    "unpacked",
]
