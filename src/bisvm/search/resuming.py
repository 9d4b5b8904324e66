"""Which fits can be resumed, and how one is told from another."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from bisvm.machines.approximation import Approximation
from bisvm.optimizers import Optimizer
from bisvm.search.checkpoint import (
    Checkpoint,
    described,
    digest,
    open_checkpoint,
    unpacked,
)
from bisvm.search.data import Data
from bisvm.search.settings import Settings

# Settings that do not change the result of a run that comes to its end. A run that has
# stopped at its time limit goes on with a later one; what `max_memory` or the free
# memory has decided is kept on file, and compared with what it would decide now.
FREE = ("n_jobs", "verbose", "callback", "checkpoint", "time_limit", "max_memory")

_UNITS = "units of work (named starts are apart without a callback)"


def check_resumable(checkpoint: Any, random_state: Any, optimizer: Optimizer) -> None:
    """Refuse a checkpoint that could never be resumed."""
    if checkpoint is None:
        return
    if not isinstance(checkpoint, (str, bytes)) and not hasattr(
        checkpoint, "__fspath__"
    ):
        raise ValueError(
            "checkpoint must be the name of a file, such as 'run.checkpoint', or None; "
            f"got {checkpoint!r}."
        )
    if random_state is None:
        raise ValueError(
            "checkpoint with random_state=None cannot be resumed: other splits would "
            "be drawn. Set random_state to a number."
        )
    if not optimizer.any_machine:
        raise ValueError(
            f"checkpoint keeps evaluations of the validation loss, and {optimizer} "
            "does most of its work between them. Use an optimizer of the validation "
            "loss alone, such as 'bfgs' or 'bundle', or checkpoint=None."
        )


def checkpoint_of(
    kind: str,
    arguments: Mapping[str, Any],
    data: Data,
    seeds: np.ndarray,
    rule: Approximation | None,
    n_units: int,
) -> AbstractContextManager[Checkpoint | None]:
    """The file of this fit, new or to go on with; None if none is asked for.

    kind : name of the estimator's class
    arguments : all that the estimator was given, `checkpoint` included
    """
    path = arguments["checkpoint"]
    if path is None:
        return nullcontext()
    told = {name: described(arguments[name]) for name in arguments if name not in FREE}
    identity = {
        "versions": {name: _version(name) for name in ("bisvm", "numpy")},
        "settings": {"estimator": kind, **told, _UNITS: str(n_units)},
        "data": _data(data, seeds),
    }
    return open_checkpoint(path, identity, rule)


def rule_of(
    file: Checkpoint, now: Approximation | None, settings: Settings
) -> Approximation | None:
    """How kernels are approximated, as it was decided when the run began.

    `now` is what the settings and the free memory would decide today. A `max_memory`
    that asks for something else is refused.
    """
    before = None if file.extra is None else _restored(file)
    asked = settings.max_memory
    if asked is not None and _numbers(before) != _numbers(now):
        raise ValueError(
            f"{file.path} is the checkpoint of a run that had {_in_words(before)}, and "
            f"max_memory={asked!r} means {_in_words(now)}. To go on with that run, "
            "leave max_memory as it was. To begin a new one, choose a file that does "
            "not exist yet."
        )
    return before


def _restored(file: Checkpoint) -> Approximation:
    try:
        return unpacked(Approximation, file.extra or b"")
    except ValueError:
        raise ValueError(
            f"{file.path} is damaged: it does not say how kernels are approximated. "
            "Choose another file to begin a new run."
        ) from None


def _numbers(rule: Approximation | None) -> Approximation | None:
    """What the model depends on."""
    return None if rule is None else replace(rule, limited="", warns=False)


def _in_words(rule: Approximation | None) -> str:
    if rule is None or not rule.needed:
        return "the whole Gram matrix"
    return f"at most {rule.most} landmarks ({rule.final} in the final machine)"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _data(data: Data, seeds: np.ndarray) -> dict[str, str]:
    """Digests of what a fit is given, and of what was drawn from it."""
    names = data.feature_names
    groups, spread = data.groups, data.sample_groups
    extra = (names if names is None else np.array(names), data.matrix)
    return {
        "X": digest(data.X, *(part for part in extra if part is not None)),
        "y": digest(data.y, data.classes),
        "sample_weight": digest(data.weight, data.rows),
        "groups": digest(*(() if groups is None else (groups,))),
        "sample_groups": digest(
            *(() if spread is None else (spread.names, spread.codes))
        ),
        "cv (splits)": digest(*(part for split in data.splits for part in split)),
        "random_state": digest(seeds),
    }
