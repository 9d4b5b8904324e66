"""bisvm.report: from a fitted model to an HTML file."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from os import PathLike
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from bisvm.core.files import whole_file
from bisvm.core.optional import not_installed
from bisvm.core.types import Array, UserData, UserVector
from bisvm.estimators.importance import Importance
from bisvm.estimators.pipelines import last_step
from bisvm.estimators.quality import NORMAL, share_in_words
from bisvm.reporting.facts import Asked, class_facts, gather
from bisvm.reporting.numbers import number_facts
from bisvm.reporting.scores import share_of
from bisvm.reporting.words import decimals

# Estimators that have a report, and their subclasses.
REPORTED = (
    *("BilevelSVC", "BilevelLinearSVC"),
    *("BilevelSVR", "BilevelLinearSVR"),
    *("ConvolutionalSVC", "ConvolutionalLinearSVC"),
)
# Control characters, halves of surrogate pairs, and characters that reverse the
# direction of the text after them: all are shown as a replacement character.
UNPRINTABLE = dict.fromkeys(
    [
        *(code for code in range(0xA0) if not chr(code).isprintable()),
        *range(0xD800, 0xE000),
        *(0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    ],
    "\ufffd",
)
# An option of the command line, which is never broken after its dashes.
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
# After these, within a long name but not within a number, a line may end.
SEPARATOR = re.compile(r"(?<=\w)([_/]|[.\-](?=[^\W\d]))(?=\w)")
del UNPRINTABLE[ord("\n")], UNPRINTABLE[ord("\t")]


def report(
    model: BaseEstimator,
    X: UserData,
    y: UserVector,
    path: str | PathLike[str],
    *,
    X_test: UserData = None,
    y_test: UserVector = None,
    title: str = "Can the target be predicted?",
    asked: Mapping[str, str] | None = None,
    seconds: float | None = None,
    compare: bool = True,
    details: bool = False,
    max_seconds: float = 120.0,
    warnings: Sequence[str] = (),
    positive: str | None = None,
    importance: Importance | None = None,
    data_lines: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    sample_weight: UserVector = None,
    groups: UserVector = None,
    sample_groups: UserVector = None,
) -> Path:
    """Write a report on a fitted model: one self-contained HTML file.

    The report says whether the target can be predicted, how well, and by which columns.
    It compares the model with usual methods on the same rows. A report on numbers draws
    predictions, errors and intervals of held-out rows.
    A folded section has the technical details: settings, learned values, certificate,
    and the Python code that rebuilds the model. Names and values from the data are
    escaped.

    Parameters
    ----------
    model : fitted BilevelSVC, BilevelLinearSVC, BilevelSVR, BilevelLinearSVR, \
ConvolutionalSVC, ConvolutionalLinearSVC, or Pipeline
        A pipeline must end with one of them.
    X, y : the data it was fitted on
    path : file to write
    X_test, y_test : held-out rows, optional
        Without them, the report has no independent estimate of the accuracy.
    title : str
    asked : dict from name to text, optional
        Further settings to show, such as the name of the file.
    seconds : float, optional
        Duration of the tuning; by default taken from `history_`.
    compare : bool
        Whether to compare with usual methods.
    details : bool
        Whether to compare with a grid search of the same duration, and to draw the
        search and the loss around the optimum, which takes up to 20 seconds more and
        needs matplotlib.
    max_seconds : float
        Longest duration of the grid search.
    warnings : sequence of str
        Doubts about the data, such as those of `bisvm.tables.check_table`.
    positive : str, optional
        The class of interest of two; by default the rarer one.
    importance : `bisvm.estimators.importance.Importance`, optional
        Of the columns; computed by default.
    data_lines : sequence of str
        Python code that makes X and y.
    progress : callable, optional
        Called with a text at every step.
    sample_weight, groups, sample_groups : as given to `fit`

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
    _check(model, path, details)
    y, y_test = _labels(X, y, X_test, y_test)
    given = dict(
        sample_weight=sample_weight, groups=groups, sample_groups=sample_groups
    )
    found = gather(
        model,
        X,
        y,
        X_test,
        y_test,
        asked=Asked(
            asked or {},
            compare,
            details,
            max_seconds,
            [str(one) for one in warnings],
            positive,
            importance,
        ),
        seconds=seconds,
        fit_params={name: value for name, value in given.items() if value is not None},
        progress=progress or (lambda text: None),
    )
    of_target, template = (
        (number_facts, "numbers.html")
        if is_regressor(found.machine)
        else (class_facts, "classes.html")
    )
    facts = of_target(found, X_test)
    text = page(template, title=str(title), data_lines=list(data_lines), **facts)
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))
    return path


def page(template: str, **facts: object) -> str:
    """Fill a template; all values are escaped."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup, escape

    def printable(value: object) -> object:
        return value if isinstance(value, Markup) else str(value).translate(UNPRINTABLE)

    def name(text: object) -> Markup:
        """A name that may be broken after its separators."""
        shown = str(escape(str(text).translate(UNPRINTABLE)))
        return Markup(SEPARATOR.sub(r"\1<wbr>", shown))

    def options(text: object) -> Markup:
        """A text whose options of the command line stay in one piece."""
        shown = str(escape(str(text).translate(UNPRINTABLE)))
        return Markup(OPTION.sub(r'<span class="option">\g<0></span>', shown))

    environment = Environment(
        loader=FunctionLoader(_resource),
        extensions=["jinja2.ext.do"],
        autoescape=True,
        finalize=printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = "{:.1%}".format
    environment.filters["thousands"] = "{:,}".format
    environment.filters["interval"] = _interval
    environment.filters["seconds"] = _seconds
    environment.filters["name"] = name
    environment.filters["options"] = options
    environment.filters["decimals"] = decimals
    environment.filters["typeset"] = lambda text: str(text).replace("R^2", "R\u00b2")
    environment.filters["in_words"] = lambda share: share_in_words(*share[:3])
    style, script = _resource("page.css"), _resource("page.js")
    return environment.get_template(template).render(
        style=Markup(style),
        style_hash=_hash(style),
        script=Markup(script),
        script_hash=_hash(script),
        normal=NORMAL,
        **facts,
    )


def _resource(name: str) -> str:
    return files("bisvm.reporting").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _interval(right: Array) -> str:
    value, low, high, _ = share_of(right)
    return f"{value:.1%} ({low:.1%} to {high:.1%})"


def _seconds(duration: float) -> str:
    return f"{duration:.2f}" if duration >= 0.1 else f"{duration:.2g}"


def check_can_report(path: Path, details: bool = False) -> None:
    """Raise an error now if a report could not be written later."""
    for package in ("jinja2", *(("matplotlib",) if details else ())):
        if find_spec(package) is None:
            raise not_installed("Reports", package)
    folder = path.resolve().parent
    if not folder.is_dir():
        raise ValueError(f"There is no folder {str(folder)!r} for the report.")
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; expected a file name.")


def _check(model: BaseEstimator, path: Path, details: bool) -> None:
    check_can_report(path, details)
    machine = last_step(model)
    if not any(kind.__name__ in REPORTED for kind in type(machine).__mro__):
        raise TypeError(
            f"report takes a fitted {', '.join(REPORTED)}, or a Pipeline that ends "
            f"with one; got {type(model).__name__}."
        )
    check_is_fitted(machine)
    if not hasattr(machine, "certificate_"):
        raise ValueError(f"The fit of this {type(machine).__name__} was interrupted.")


def _labels(
    X: UserData, y: UserVector, X_test: UserData, y_test: UserVector
) -> tuple[Array, Array | None]:
    if (X_test is None) != (y_test is None):
        given, missing = (
            ("y_test", "X_test") if X_test is None else ("X_test", "y_test")
        )
        raise ValueError(f"{given} was given without {missing}: pass both, or neither.")
    y = np.asarray(y)
    check_consistent_length(X, y)
    if y_test is None:
        return y, None
    y_test = np.asarray(y_test)
    check_consistent_length(X_test, y_test)
    return y, y_test if len(y_test) else None
