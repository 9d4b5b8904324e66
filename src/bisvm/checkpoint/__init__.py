"""Runs that survive their process: evaluations on file, and how they are replayed.

A checkpoint is a file of lines (`lines.py`): who the run is, then one line for every
evaluation of the upper level. A run that is begun again puts the same questions in the
same order; `Journal` answers them from the file as long as there are lines, and what
the next evaluation takes over from those before (`Objective.state`) lies beside it.
"""

from bisvm.checkpoint.files import Checkpoint, open_checkpoint
from bisvm.checkpoint.fingerprint import described, digest
from bisvm.checkpoint.journal import Journal
from bisvm.checkpoint.records import restored, stored

__all__ = [
    "Checkpoint",
    "Journal",
    "described",
    "digest",
    "open_checkpoint",
    "restored",
    "stored",
]
