"""bisvm.report: from a fitted model to a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from bisvm.reporting.facts import Asked, gather
from bisvm.reporting.page import page


def report(
    model: Any,
    X: Any,
    y: Any,
    path: str | PathLike[str],
    *,
    X_test: Any = None,
    y_test: Any = None,
    title: str = "What the SVM has learned",
    asked: Mapping[str, Any] | None = None,
    seconds: float | None = None,
    compare: bool = True,
    landscape: bool = True,
    max_seconds: float = 120.0,
    data_lines: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    sample_groups: Any = None,
) -> Path:
    """Write a report on a fitted model: one HTML file that needs nothing else.

    It says what was asked, what the data are, what was learned, how that was found and
    how good it is, beside an SVC as it comes and a grid search that takes as long as
    tuning took, and has the Python lines that make the model again. Whatever comes from
    the data is shown as text, and never run.

    Parameters
    ----------
    model : fitted BilevelSVC, BilevelLinearSVC, ConvolutionalSVC,
        ConvolutionalLinearSVC, or Pipeline
        A pipeline ends with one of them.
    X, y : what it was fitted on
    path : file to write
    X_test, y_test : rows that nothing has seen, optional
        Without them nobody knows how good it is on new rows, and the report says so.
    title : str
    asked : dict from name to text, optional
        What was asked, for the report to repeat: the file, the question.
    seconds : float, optional
        What tuning took; by default what `history_` says.
    compare : bool
        False leaves out the SVC and the grid.
    landscape : bool
        False leaves out the picture of the loss around the optimum, which takes up to
        20 seconds.
    max_seconds : float
        The grid gets no more; the report says so if tuning took longer.
    data_lines : sequence of str
        Python that makes X and y, for the lines that make the model again.
    progress : callable, optional
        Is told what is being done, in words.
    sample_weight, groups, sample_groups : as `fit` was given them

    Returns
    -------
    path : Path of the file

    Examples
    --------
    >>> import bisvm
    >>> model = bisvm.BilevelSVC("ard", random_state=0).fit(X, y)  # doctest: +SKIP
    >>> bisvm.report(model, X, y, "report.html", X_test=X_test, y_test=y_test)
    ... # doctest: +SKIP
    """
    path = Path(path)
    _check(model, path)
    y, y_test = _labels(X, y, X_test, y_test)
    given = dict(
        sample_weight=sample_weight, groups=groups, sample_groups=sample_groups
    )
    facts = gather(
        model,
        X,
        y,
        X_test,
        y_test,
        Asked(
            title=str(title),
            words=dict(asked or {}),
            seconds=seconds,
            compare=compare,
            landscape=landscape,
            max_seconds=max_seconds,
            data_lines=list(data_lines),
            fit={name: value for name, value in given.items() if value is not None},
            progress=progress or (lambda text: None),
        ),
    )
    # What no encoding has, such as half a pair, has been replaced before.
    path.write_text(page(facts), encoding="utf-8", newline="\n")
    return path


def check_can_report(path: Path) -> None:
    """Refuse, before any work is done, what could not be written in the end."""
    if find_spec("matplotlib") is None:
        raise ImportError(
            "A report has pictures, and matplotlib is not installed: pip install "
            "bisvm[plots]"
        )
    folder = path.resolve().parent
    if not folder.is_dir():
        raise ValueError(f"There is no folder {str(folder)!r} for the report.")
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; name a file, such as out.html.")


def _check(model: Any, path: Path) -> None:
    check_can_report(path)
    machine = model[-1] if isinstance(model, Pipeline) and len(model) else model
    kinds = (
        "BilevelSVC",
        "BilevelLinearSVC",
        "ConvolutionalSVC",
        "ConvolutionalLinearSVC",
    )
    if not any(kind.__name__ in kinds for kind in type(machine).__mro__):
        raise TypeError(
            f"report takes a fitted {', '.join(kinds)}, or a Pipeline that ends with "
            f"one; got {type(model).__name__}."
        )
    check_is_fitted(machine)
    if not hasattr(machine, "certificate_"):
        raise ValueError(f"{type(machine).__name__} was not fitted to the end.")


def _labels(X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[Any, Any]:
    if (X_test is None) != (y_test is None):
        given, missing = (
            ("y_test", "X_test") if X_test is None else ("X_test", "y_test")
        )
        raise ValueError(f"{given} was given without {missing}: pass both, or neither.")
    y = np.asarray(y)
    check_consistent_length(X, y)
    if y_test is None or not len(y_test):
        return y, None
    check_consistent_length(X_test, y_test)
    return y, np.asarray(y_test)
