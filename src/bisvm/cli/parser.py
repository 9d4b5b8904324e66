"""The options of the command line, with examples."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bisvm import __version__

ABOUT = """\
An SVM that tunes itself: all hyperparameters are learned by gradient descent on the
cross-validated loss. Results go to standard output, messages to standard error.
"""
EXAMPLES = """\
examples:
  bisvm demo                                    half a minute, with built-in data
  bisvm tune flowers.csv --target species       learn and report the accuracy
  bisvm tune flowers.csv --target species --save flowers.skops
  bisvm predict flowers.skops new.csv           predict a class for every row
  bisvm explain flowers.skops                   describe what was learned
  bisvm compare flowers.csv --target species    compare with usual classifiers
  bisvm reproduce --list                        list tables and figures of papers

`bisvm COMMAND --help` says more. Exit codes: 1 for data and files, 2 for the command.
"""

# --- types of arguments ---------------------------------------------------------------


def _number(
    kind: type[int] | type[float], test: Callable[[float], bool], wanted: str
) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = kind(text)
            valid = test(value)
        except ValueError:
            valid = False
        if not valid:
            raise argparse.ArgumentTypeError(f"expected {wanted}, got {text!r}")
        return value

    return read


_count = _number(int, lambda n: n >= 1, "a whole number of at least 1")
_folds = _number(int, lambda n: n >= 2, "a whole number of at least 2")
_lines = _number(int, lambda n: n >= 0, "a whole number from 0")
_seed = _number(int, lambda n: 0 <= n < 2**32, "a whole number from 0")
_share = _number(float, lambda x: 0 <= x <= 0.9, "a share from 0 to 0.9")
_coverage = _number(float, lambda x: 0 < x < 1, "a share between 0 and 1")
_seconds = _number(float, lambda x: 0 < x < math.inf, "a positive number of seconds")


def _choice(words: dict[str, str], wanted: str) -> Callable[[str], str]:
    """Accept a word for a character, or the character itself."""
    known = {**words, **{sign: sign for sign in words.values()}}

    def read(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(f"expected {wanted}, got {text!r}")
        return known[text]

    return read


_decimal = _choice({"point": ".", "comma": ","}, "point or comma")
_separator = _choice(
    {
        "tab": "\t",
        "\\t": "\t",
        "comma": ",",
        "semicolon": ";",
        "space": " ",
        "bar": "|",
    },
    "one of , ; | tab space",
)


def _by_class(words: tuple[str, ...]) -> Callable[[str], str | tuple[str, float]]:
    """Accept one of some words, or CLASS=NUMBER."""

    def read(text: str) -> str | tuple[str, float]:
        if text in words:
            return text
        name, sign, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not (sign and 0 <= value < math.inf):
            known = ", ".join(words)
            raise argparse.ArgumentTypeError(
                f"expected {known} or CLASS=NUMBER, got {text!r}"
            )
        return name, value

    return read


def _encoding(text: str) -> str:
    """Accept the name of an encoding that Python has."""
    try:
        "".encode(text)
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(
            f"expected an encoding such as utf-8, cp1250 or latin-1, got {text!r}"
        ) from None
    return text.lower()


def _date(text: str) -> tuple[str, str]:
    """Accept COLUMN=FORMAT."""
    name, sign, form = text.rpartition("=")
    if not (name and sign and "%" in form):
        raise argparse.ArgumentTypeError(
            f"expected COLUMN=FORMAT, such as day=%d/%m/%Y, got {text!r}"
        )
    return name, form


_class_weight = _by_class(("balanced", "learn"))
_threshold = _by_class(("accuracy", "balanced_accuracy", "f1"))


# --- options --------------------------------------------------------------------------

_FLAG: dict[str, Any] = dict(action="store_true")
_FILE: dict[str, Any] = dict(type=Path, metavar="FILE")
_COLUMNS: dict[str, Any] = dict(action="append", default=[], metavar="COLUMN")

# The arguments of `add_argument`, by option. Several commands share an option.
OPTIONS: dict[str, dict[str, Any]] = {
    "data": dict(type=Path, help="file with the table"),
    "model": dict(type=Path, help="a file saved by `bisvm tune`"),
    "names": dict(nargs="*", metavar="NAME", help="names of experiments"),
    "--format": dict(
        choices=("csv", "tsv", "excel", "jsonl", "parquet", "libsvm", "npz"),
        help="format of the file (default: detected)",
    ),
    "--separator": dict(
        type=_separator, help="one character, or 'tab' (default: detected)"
    ),
    "--header": dict(
        choices=("yes", "no"), help="whether there is a header (default: detected)"
    ),
    "--skip-lines": dict(
        type=_lines,
        metavar="N",
        help="lines above the table, such as a title (default: detected)",
    ),
    "--skip-last": dict(
        type=_lines,
        metavar="N",
        help="lines below the table, such as sums and footnotes (default: detected)",
    ),
    "--encoding": dict(
        type=_encoding,
        metavar="NAME",
        help="encoding of text, such as cp1250 (default: UTF-8, or else Windows-1252)",
    ),
    "--sheet": dict(
        help="sheet of an Excel file, by name or number (default: the first with a "
        "table)"
    ),
    "--missing": dict(
        action="append",
        default=[],
        metavar="WORD",
        help="a word for missing values, in addition to the usual ones; it applies to "
        "the target, too (may be repeated)",
    ),
    "--decimal": dict(
        type=_decimal,
        metavar="SIGN",
        help="decimal sign, 'point' or 'comma' (default: detected)",
    ),
    "--first-index": dict(
        type=int,
        choices=(0, 1),
        help="number of the first feature of a LIBSVM file (default: detected)",
    ),
    "--target": dict(
        metavar="COLUMN",
        help="what to predict: a name, a number from 1, or -1 for the last (default)",
    ),
    "--task": dict(
        choices=("auto", "classification", "regression"),
        default="auto",
        help="whether the target holds classes or numbers (default: numbers with many "
        "different values are predicted as numbers)",
    ),
    "--merge-labels": dict(
        help="merge labels that differ only in case or spaces", **_FLAG
    ),
    "--keep-label": dict(
        metavar="WORD",
        action="append",
        default=[],
        help="a class such as NA, which other columns use for missing values (may be "
        "repeated)",
    ),
    "--categorical": dict(
        help="a column of numbers that are categories (may be repeated)", **_COLUMNS
    ),
    "--numeric": dict(
        help="a column of numbers that look like codes, such as 007 (may be repeated)",
        **_COLUMNS,
    ),
    "--date": dict(
        type=_date,
        action="append",
        default=[],
        metavar="COLUMN=FORMAT",
        help="a column of dates and its format, such as day=%%d/%%m/%%Y (may be "
        "repeated)",
    ),
    "--drop": dict(help="a column to ignore (may be repeated)", **_COLUMNS),
    "--keep": dict(
        help="a column to use although it looks like names or numbers of rows (may be "
        "repeated)",
        **_COLUMNS,
    ),
    "--kernel": dict(
        choices=("auto", "rbf", "ard", "poly", "chi2", "linear", "mkl"),
        default="auto",
        help="'auto' chooses between linear, one width, one width per column, and "
        "further kernels, by the loss on held-out rows (default: %(default)s)",
    ),
    "--class-weight": dict(
        type=_class_weight,
        action="append",
        default=[],
        metavar="WEIGHT",
        help="'balanced' gives all classes the same weight, 'learn' learns a C for "
        "each, CLASS=NUMBER multiplies the weight of its rows (may be repeated)",
    ),
    "--criterion": dict(
        default="auto",
        metavar="NAME",
        help="the loss on held-out rows that tuning minimises, such as 'auc' or 'f1' "
        "for rare classes (default: %(default)s)",
    ),
    "--threshold": dict(
        type=_threshold,
        action="append",
        default=[],
        metavar="GOAL",
        help="for two classes, choose the decision threshold that has the best "
        "'balanced_accuracy', 'f1' or 'accuracy' on held-out rows, or the lowest cost: "
        "CLASS=COST is the cost of an error on a class (may be repeated)",
    ),
    "--positive": dict(
        metavar="CLASS",
        help="the class of interest of two, for the curves of the report (default: the "
        "rarer one) and for F1 (default: the second one)",
    ),
    "--groups": dict(
        metavar="COLUMN",
        help="a column that says which rows belong together, such as a patient: they "
        "are held out together, and the column is not used as a feature",
    ),
    "--test-size": dict(
        type=_share,
        default=0.25,
        metavar="SHARE",
        help="share of rows held out to measure the accuracy (default: %(default)s)",
    ),
    "--cv": dict(type=_folds, default=5, help="number of folds (default: %(default)s)"),
    "--time-limit": dict(
        type=_seconds,
        metavar="SECONDS",
        help="stop after this time, and keep the best model so far",
    ),
    "--n-jobs": dict(
        type=int,
        metavar="N",
        default=-1,
        help="number of threads (default: one for every processor)",
    ),
    "--seed": dict(type=_seed, default=0, help="random seed (default: %(default)s)"),
    "--resume": dict(
        help="store every evaluation here; the same command resumes a stopped run",
        **_FILE,
    ),
    "--save": dict(help="write the model here", **_FILE),
    "--report": dict(
        help="write a report with plots and a comparison, one HTML file", **_FILE
    ),
    "--details": dict(
        help="add to the report what takes longer: a grid search of the same duration, "
        "and plots of the search",
        **_FLAG,
    ),
    "--open": dict(help="open the report in a browser", **_FLAG),
    "--json": dict(help="write JSON, for machines", **_FLAG),
    "--tsv": dict(help="write names and values, separated by tabs", **_FLAG),
    "--scores": dict(help="also write the decision values", **_FLAG),
    "--proba": dict(help="also write the probabilities of all classes", **_FLAG),
    "--set": dict(
        type=_coverage,
        metavar="COVERAGE",
        help="also write a set of classes that contains the true one for this share of "
        "the rows, such as 0.9",
    ),
    "--interval": dict(
        type=_coverage,
        nargs="?",
        const=0.9,
        metavar="COVERAGE",
        help="also write an interval that contains the true number for this share of "
        "the rows (default: %(const)s)",
    ),
    "--trials": dict(
        type=_count, default=25, help="trials of Optuna (default: %(default)s)"
    ),
    "--list": dict(help="list all experiments", **_FLAG),
    "--splits": dict(type=_count, help="number of random splits"),
    "--output": dict(type=Path, metavar="PATH", help="file or folder to write to"),
}
READING = (
    "data --format --encoding --separator --header --skip-lines --skip-last --sheet "
    "--missing --decimal --first-index"
)
DATA = (
    f"{READING} --target --task --merge-labels --keep-label --categorical --numeric "
    "--date --drop --keep"
)
CLASSES = "--class-weight --criterion --threshold --positive"
LEARNING = "--kernel --groups --test-size --cv --time-limit --n-jobs --seed"


class Command(NamedTuple):
    """One command: its line in the help, its own help, examples, and options."""

    summary: str
    about: str
    examples: str
    options: str


COMMANDS = {
    "tune": Command(
        "learn to predict a column of a table",
        """\
Learn to predict a column: classes, or numbers if it has many different ones.

Files are CSV, TSV, Excel, JSON, Parquet, LIBSVM, or NPZ with X and y. Separators,
titles, headers, decimal commas, units and dates are detected. Numbers are
standardised, categories become columns, missing values are filled, and columns without
information are dropped.
""",
        """\
  bisvm tune flowers.csv --target species
  bisvm tune flowers.csv --target species --report flowers.html
  bisvm tune flowers.csv --target -1 --kernel rbf --json > result.json
  bisvm tune patients.csv --target ill --drop name --categorical ward \\
             --missing unknown --save patients.skops
  bisvm tune houses.csv --target price --save houses.skops
  bisvm tune visits.csv --target ill --groups patient --positive yes \\
             --threshold balanced_accuracy
  bisvm tune letters.libsvm --kernel linear --time-limit 60
  bisvm tune large.parquet --target class --resume large.checkpoint
""",
        f"{DATA} {LEARNING} {CLASSES} --resume --save --report --details --open "
        "--json --tsv",
    ),
    "predict": Command(
        "predict the rows of a table",
        """\
Write a class or a number for every row of a table, as CSV. The table is read like the
one that the model was trained on; options describe what is different.
""",
        """\
  bisvm predict flowers.skops new.csv
  bisvm predict flowers.skops new.csv --proba --output classes.csv
  bisvm predict houses.skops new.csv --interval 0.9
""",
        f"model {READING} --scores --proba --set --interval --output",
    ),
    "explain": Command(
        "describe what a model has learned",
        """\
Describe what a model has learned: the hyperparameters, the relevance of the columns,
and the certificate, which says how close to optimal it is.
""",
        """\
  bisvm explain flowers.skops
  bisvm explain flowers.skops --json | jq .relevance
""",
        "model --json",
    ),
    "compare": Command(
        "compare with usual classifiers, a grid search, and Optuna",
        """\
Compare guessing, logistic regression, a random forest, boosting, a default SVC, a grid
search, Optuna (if installed) and bisvm on the same rows, columns and folds. Writes one
tab-separated line for each.
""",
        """\
  bisvm compare flowers.csv --target species
  bisvm compare flowers.csv --target species --trials 50 --kernel rbf
""",
        f"{DATA} {LEARNING} {CLASSES} --trials --json",
    ),
    "reproduce": Command(
        "compute tables and figures of papers",
        """\
Compute tables and figures of papers. The experiments are part of the source
repository: run this command in a clone.
""",
        """\
  bisvm reproduce --list
  bisvm reproduce table_5_1 --splits 3
""",
        "names --list --splits --output",
    ),
    "demo": Command(
        "half a minute, with built-in data",
        "Compare an SVM that tunes itself with a grid search, where it pays and where "
        "not.",
        "  bisvm demo --output demo\n",
        "--output",
    ),
}


def build_parser() -> argparse.ArgumentParser:
    style: dict[str, Any] = dict(
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser = argparse.ArgumentParser(
        prog="bisvm", description=ABOUT, epilog=EXAMPLES, **style
    )
    parser.add_argument("--version", action="version", version=f"bisvm {__version__}")
    debug: dict[str, Any] = dict(
        action="store_true", help="show where in the code an error happened"
    )
    parser.add_argument("--debug", default=False, **debug)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (summary, about, examples, options) in COMMANDS.items():
        words = [word for word in options.split() if not word.startswith("-")]
        command = commands.add_parser(
            name,
            # All options would take so many lines that an error below was not seen.
            usage=" ".join(["bisvm", name, *map(str.upper, words), "[options]"]),
            help=summary,
            description=about,
            epilog=f"examples:\n{examples}",
            **style,
        )
        for option in options.split():
            command.add_argument(option, **OPTIONS[option])
        # Before the command or after it; after it, it must not undo the first.
        command.add_argument("--debug", default=argparse.SUPPRESS, **debug)
    return parser
