"""The words of the command line, with examples."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from bisvm import __version__

KERNELS = ("auto", "rbf", "ard", "poly", "chi2", "linear", "mkl")

ABOUT = """\
An SVM that tunes itself: all hyperparameters are learned by gradients of the
cross-validated loss. Results go to standard output, messages to standard error.
"""
EXAMPLES = """\
examples:
  bisvm demo                                    half a minute, with data that are here
  bisvm tune flowers.csv --target species       learn, and say how well it does
  bisvm tune flowers.csv --target species --save flowers.skops
  bisvm predict flowers.skops new.csv           a class for every row
  bisvm explain flowers.skops                   what it has learned, in words
  bisvm compare flowers.csv --target species    beside an SVC, a grid, and Optuna
  bisvm reproduce --list                        tables and figures of papers

`bisvm COMMAND --help` says more. Exit codes: 1 data or files, 2 the command line.
"""
DATA = """\
Files are CSV, TSV, Parquet, LIBSVM, or NPZ with X and y. Separators, a header, German
decimals and dates are recognised; numbers are standardised, categories get a column
each, missing values are filled, and columns that say nothing are left out.
"""


def build_parser() -> argparse.ArgumentParser:
    parser = _parser(argparse.ArgumentParser, ABOUT, EXAMPLES, prog="bisvm")
    parser.add_argument("--version", action="version", version=f"bisvm {__version__}")
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_tune(commands)
    _add_predict(commands)
    _add_explain(commands)
    _add_compare(commands)
    _add_reproduce(commands)
    _add_demo(commands)
    return parser


def _parser(make: Any, about: str, examples: str, *names: str, **given: Any) -> Any:
    return make(
        *names,
        description=about,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **given,
    )


def _add_tune(commands: Any) -> None:
    examples = """\
examples:
  bisvm tune flowers.csv --target species
  bisvm tune flowers.csv --target species --report flowers.html
  bisvm tune flowers.csv --target -1 --kernel rbf --json > result.json
  bisvm tune patients.csv --target ill --drop name --categorical ward \\
             --missing unknown --save patients.skops
  bisvm tune letters.libsvm --kernel linear --time-limit 60
  bisvm tune large.parquet --target class --resume large.jsonl   # twice, if need be
"""
    tune = _parser(
        commands.add_parser, f"Learn a classifier.\n\n{DATA}", examples, "tune",
        help="learn a classifier from a table",
    )  # fmt: skip
    _add_data(tune)
    _add_learning(tune)
    tune.add_argument(
        "--resume",
        type=Path,
        metavar="FILE",
        help="keep every evaluation here; the same command goes on where it was killed",
    )
    tune.add_argument("--save", type=Path, metavar="FILE", help="write the model here")
    tune.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="write a report, one HTML file: pictures, comparison, certificate",
    )
    tune.add_argument(
        "--open", action="store_true", help="show the report in the browser"
    )
    tune.add_argument("--json", action="store_true", help="write JSON")


def _add_predict(commands: Any) -> None:
    examples = """\
examples:
  bisvm predict flowers.skops new.csv
  bisvm predict flowers.skops new.csv --scores --output classes.csv
"""
    predict = _parser(
        commands.add_parser,
        "Write a class for every row of a table, as CSV. The table is read as the one "
        "that\nthe model was trained on; options say what is written in another way.",
        examples, "predict", help="classes for the rows of a table",
    )  # fmt: skip
    predict.add_argument("model", type=Path, help="a file that `bisvm tune` has saved")
    _add_reading(predict)
    predict.add_argument(
        "--scores", action="store_true", help="decision values of the classes too"
    )
    predict.add_argument("--output", type=Path, metavar="FILE", help="write to a file")


def _add_explain(commands: Any) -> None:
    examples = """\
examples:
  bisvm explain flowers.skops
  bisvm explain flowers.skops --json | jq .relevance
"""
    explain = _parser(
        commands.add_parser,
        "What a model has learned: hyperparameters in words, columns by relevance, and "
        "the\ncertificate, which says how near to optimal it is.",
        examples, "explain", help="what a model has learned",
    )  # fmt: skip
    explain.add_argument("model", type=Path, help="a file that `bisvm tune` has saved")
    explain.add_argument("--json", action="store_true", help="write JSON")


def _add_compare(commands: Any) -> None:
    examples = """\
examples:
  bisvm compare flowers.csv --target species
  bisvm compare flowers.csv --target species --trials 50 --kernel rbf
"""
    compare = _parser(
        commands.add_parser,
        "The same rows, columns and folds for an SVC as it comes, a grid search, "
        "Optuna if\nit is installed, and bisvm. One line each, tab-separated.",
        examples, "compare", help="beside an SVC, a grid search, and Optuna",
    )  # fmt: skip
    _add_data(compare)
    _add_learning(compare)
    compare.add_argument(
        "--trials", type=_count, default=25, help="of Optuna (default: %(default)s)"
    )
    compare.add_argument("--json", action="store_true", help="write JSON")


def _add_reproduce(commands: Any) -> None:
    examples = """\
examples:
  bisvm reproduce --list
  bisvm reproduce table_5_1 --splits 3
"""
    reproduce = _parser(
        commands.add_parser,
        "Tables and figures of papers, computed anew. The experiments are part of the "
        "source\nrepository: call it from a clone.",
        examples, "reproduce", help="tables and figures of papers",
    )  # fmt: skip
    reproduce.add_argument("names", nargs="*", metavar="NAME", help="of experiments")
    reproduce.add_argument("--list", action="store_true", help="name all of them")
    reproduce.add_argument("--splits", type=_count, help="random splits")
    reproduce.add_argument("--output", type=Path, help="folder of tables and pictures")


def _add_demo(commands: Any) -> None:
    demo = _parser(
        commands.add_parser,
        "Tunes an SVM on the breast cancer data, beside a grid search.",
        "example:\n  bisvm demo --output pictures\n",
        "demo", help="half a minute, with data that are here",
    )  # fmt: skip
    demo.add_argument(
        "--output",
        type=Path,
        default=Path("demo-output"),
        help="folder of the picture (default: %(default)s)",
    )


def _add_reading(parser: Any) -> None:
    parser.add_argument("data", type=Path, help="file with the table")
    parser.add_argument(
        "--format",
        choices=("csv", "tsv", "parquet", "libsvm", "npz"),
        help="of the file; guessed by default",
    )
    parser.add_argument(
        "--separator", type=_separator, help="one character, or 'tab'; guessed"
    )
    parser.add_argument(
        "--header", choices=("yes", "no"), help="whether there is one; guessed"
    )
    parser.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="WORD",
        help="a word that stands for a missing value, in the target too, beside the "
        "usual ones (may be repeated)",
    )
    parser.add_argument(
        "--decimal",
        type=_decimal,
        metavar="SIGN",
        help="decimal sign, 'point' or 'comma'; guessed",
    )
    parser.add_argument(
        "--first-index",
        type=int,
        choices=(0, 1),
        help="number of the first feature of a LIBSVM file; guessed",
    )


def _add_data(parser: Any) -> None:
    _add_reading(parser)
    parser.add_argument(
        "--target",
        metavar="COLUMN",
        help="what to predict: a name, a number from 1, or -1 for the last (default)",
    )
    parser.add_argument(
        "--categorical",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a column of categories that look like numbers (may be repeated)",
    )
    parser.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a column to leave out (may be repeated)",
    )
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a column to learn from though it looks like names or numbers of rows",
    )


def _add_learning(parser: Any) -> None:
    parser.add_argument(
        "--kernel",
        choices=KERNELS,
        default="auto",
        help="auto: linear, one width, or one for each column, whichever held-out rows "
        "ask for (default)",
    )
    parser.add_argument(
        "--test-size",
        type=_share,
        default=0.25,
        metavar="SHARE",
        help="of the rows that are held out and only counted (default: %(default)s)",
    )
    parser.add_argument(
        "--cv", type=_folds, default=5, help="folds to learn on (default: %(default)s)"
    )
    parser.add_argument(
        "--time-limit",
        type=_seconds,
        metavar="SECONDS",
        help="stop with the best so far",
    )
    parser.add_argument("--n-jobs", type=int, metavar="N", help="processors to use")
    parser.add_argument(
        "--seed", type=_seed, default=0, help="of all chance (default: %(default)s)"
    )


def _number(kind: Any, test: Any, wanted: str) -> Any:
    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not test(value):
            raise argparse.ArgumentTypeError(f"expected {wanted}, got {text!r}")
        return value

    return read


_count = _number(int, lambda n: n >= 1, "a whole number of at least 1")
_folds = _number(int, lambda n: n >= 2, "a whole number of at least 2")
_seed = _number(int, lambda n: 0 <= n < 2**32, "a whole number from 0")
_share = _number(float, lambda x: 0 <= x <= 0.9, "a share from 0 to 0.9")
_seconds = _number(float, lambda x: 0 < x < math.inf, "a positive number of seconds")


def _decimal(text: str) -> str:
    signs = {"point": ".", "comma": ",", ".": ".", ",": ","}
    if text not in signs:
        raise argparse.ArgumentTypeError(f"expected point or comma, got {text!r}")
    return signs[text]


def _separator(text: str) -> str:
    named = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
    named["bar"] = "|"
    text = named.get(text, text)
    if text not in (",", ";", "\t", "|", " "):
        raise argparse.ArgumentTypeError(
            f"expected one of , ; | tab space, got {text!r}"
        )
    return text
