"""The options of the command line, with examples."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from bisvm import __version__
from bisvm.cli import arguments
from bisvm.cli.arguments import BALANCED, CRITERIA, KERNELS, did_you_mean, in_words

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

# --- options --------------------------------------------------------------------------

_FLAG: dict[str, Any] = dict(action="store_true")
_FILE: dict[str, Any] = dict(type=Path, metavar="FILE")
_COLUMNS: dict[str, Any] = dict(action="append", default=[], metavar="COLUMN")

# The arguments of `add_argument`, by option. Several commands share an option.
OPTIONS: dict[str, dict[str, Any]] = {
    "data": dict(type=Path, metavar="TABLE", help="file with the table"),
    "model": dict(type=Path, metavar="MODEL", help="a file saved by `bisvm tune`"),
    "names": dict(nargs="*", metavar="NAMES", help="names of experiments"),
    "--format": dict(
        choices=("csv", "tsv", "excel", "jsonl", "parquet", "libsvm", "npz"),
        help="format of the file (default: detected)",
    ),
    "--separator": dict(
        type=arguments.separator, help="one character, or 'tab' (default: detected)"
    ),
    "--header": dict(
        choices=("yes", "no"), help="whether there is a header (default: detected)"
    ),
    "--skip-lines": dict(
        type=arguments.lines,
        metavar="N",
        help="lines above the table, such as a title (default: detected)",
    ),
    "--skip-last": dict(
        type=arguments.lines,
        metavar="N",
        help="lines below the table, such as sums and footnotes (default: detected)",
    ),
    "--encoding": dict(
        type=arguments.encoding,
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
        type=arguments.decimal,
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
        type=arguments.date,
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
        type=arguments.kernel,
        default="auto",
        metavar="NAME",
        help=f"{in_words(KERNELS)} (default: %(default)s)",
    ),
    "--class-weight": dict(
        type=arguments.class_weight,
        action="append",
        default=[],
        metavar="WEIGHT",
        help="how much errors on a class count: 'balanced' gives all classes the same "
        "total weight, 'learn' finds the weight of each class by tuning, and "
        "CLASS=NUMBER multiplies the weight of a class (may be repeated)",
    ),
    "--criterion": dict(
        type=arguments.criterion,
        default="auto",
        metavar="NAME",
        help="what tuning improves in cross-validation: "
        f"{in_words(CRITERIA)} (default: %(default)s). F1 is that of the second of "
        "two classes in alphabetical order, or the mean over more classes. "
        f"'{BALANCED}' before a name gives all classes the same weight, as in "
        f"{BALANCED}auto",
    ),
    "--threshold": dict(
        type=arguments.threshold,
        action="append",
        default=[],
        metavar="GOAL",
        help="for two classes, move the decision threshold to where "
        "'balanced_accuracy', 'f1' or 'accuracy' is best in cross-validation, or where "
        "the cost is lowest: CLASS=COST is the cost of an error on a class (may be "
        "repeated)",
    ),
    "--positive": dict(
        metavar="CLASS",
        help="the class of interest of two, for --threshold f1 and for the curves of "
        "the report (default: the rarer one)",
    ),
    "--groups": dict(
        metavar="COLUMN",
        help="a column that says which rows belong together, such as a patient: a "
        "group is never divided between test rows and others, or between folds; the "
        "column is not used as a feature",
    ),
    "--test-size": dict(
        type=arguments.share,
        default=0.25,
        metavar="SHARE",
        help="share of the rows that are test rows, which measure the result and have "
        "no part in tuning; 0 for none (default: %(default)s)",
    ),
    "--cv": dict(
        type=arguments.folds,
        default=5,
        metavar="N",
        help="number of folds of the cross-validation that chooses the hyperparameters "
        "(default: %(default)s)",
    ),
    "--time-limit": dict(
        type=arguments.seconds,
        metavar="SECONDS",
        help="stop after this time, and keep the best model so far",
    ),
    "--n-jobs": dict(
        type=int,
        metavar="N",
        default=-1,
        help="number of threads (default: one for every processor)",
    ),
    "--seed": dict(
        type=arguments.seed, default=0, help="random seed (default: %(default)s)"
    ),
    "--resume": dict(
        help="store every evaluation here; the same command resumes a stopped run",
        **_FILE,
    ),
    "--save": dict(
        type=arguments.file_ending(".skops"),
        metavar="FILE",
        help="write the model here (.skops)",
    ),
    "--report": dict(
        type=arguments.file_ending(".html", ".htm"),
        metavar="FILE",
        help="write a report with plots and a comparison, one file (.html)",
    ),
    "--details": dict(
        help="add to the report what takes longer: a grid search of the same duration, "
        "and plots of the search (needs matplotlib)",
        **_FLAG,
    ),
    "--open": dict(help="open the report in a browser", **_FLAG),
    "--json": dict(
        help="write JSON, for machines, with all digits of numbers", **_FLAG
    ),
    "--tsv": dict(help="write names and values, separated by tabs", **_FLAG),
    "--scores": dict(help="also write the decision values", **_FLAG),
    "--proba": dict(help="also write the probabilities of all classes", **_FLAG),
    "--set": dict(
        type=arguments.coverage,
        metavar="COVERAGE",
        help="also write a set of classes that contains the true one for this share of "
        "the rows, such as 0.9; '(none)' is an empty set: the row is less typical of "
        "every class than most rows in cross-validation are of theirs",
    ),
    "--by-class": dict(
        help="with --set, the share is that of the rows of every class, even of a rare "
        "one, and not of all rows together; sets are larger",
        **_FLAG,
    ),
    "--interval": dict(
        type=arguments.coverage,
        nargs="?",
        const=0.9,
        metavar="COVERAGE",
        help="also write an interval that contains the true number for this share of "
        "the rows (default: %(const)s)",
    ),
    "--trials": dict(
        type=arguments.count, default=25, help="trials of Optuna (default: %(default)s)"
    ),
    "--list": dict(help="list all experiments", **_FLAG),
    "--splits": dict(type=arguments.count, help="number of random splits"),
    "--with": dict(
        dest="copied",
        help="a column of the table to write before the prediction, such as an id (may "
        "be repeated); numbers are written with a decimal point, and words for missing "
        "values become empty cells",
        **_COLUMNS,
    ),
    "--with-all": dict(
        dest="copy_all", help="write all columns of the table before it", **_FLAG
    ),
    "--output": dict(type=Path, metavar="FOLDER", help="folder to write to"),
}
# Arguments that differ in one command.
IN_COMMAND: dict[tuple[str, str], dict[str, Any]] = {
    ("predict", "--output"): dict(
        help="file to write to (default: standard output)", **_FILE
    ),
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

A quarter of the rows are test rows: they measure the result. On the others, 5-fold
cross-validation chooses the hyperparameters.
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
one that the model was trained on; options describe what is different. Numbers have six
digits; --json has all.
""",
        """\
  bisvm predict flowers.skops new.csv
  bisvm predict flowers.skops new.csv --proba --output classes.csv
  bisvm predict patients.skops new.csv --with name --with ward
  bisvm predict patients.skops new.csv --with-all --json
  bisvm predict houses.skops new.csv --interval 0.9
""",
        f"model {READING} --with --with-all --scores --proba --set --by-class "
        "--interval --output --json",
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


# --- parsing --------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser whose errors say where the options are listed."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        stop = "" if message.endswith((".", "?")) else "."
        more = f"`{self.prog} --help` says more."
        self.exit(2, f"{self.prog}: error: {message}{stop} {more}\n")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    return _parsers()[0]


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line; exit with 2 if it is wrong.

    Parameters
    ----------
    words : sequence of str, optional
        Those after `bisvm`; those of the process by default.

    Returns
    -------
    options : Namespace
        `options.command` is None if there is no command.
    """
    parser, commands = _parsers()
    words = sys.argv[1:] if words is None else words
    first = next((word for word in words if word != "--debug"), "-")
    if not first.startswith("-") and first not in commands:
        parser.error(_unknown_command(first))
    options, extra = parser.parse_known_args(words)
    own = commands.get(options.command, parser)
    if extra:
        own.error(_not_expected(options, extra))
    for name in ("open", "details"):
        if getattr(options, name, False) and options.report is None:
            own.error(f"--{name} needs --report FILE")
    if getattr(options, "by_class", False) and options.set is None:
        own.error("--by-class needs --set COVERAGE")
    return options


def _parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser, and those of the commands."""
    style: dict[str, Any] = dict(
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser = _Parser(prog="bisvm", description=ABOUT, epilog=EXAMPLES, **style)
    parser.add_argument("--version", action="version", version=f"bisvm {__version__}")
    debug: dict[str, Any] = dict(
        action="store_true", help="show where in the code an error happened"
    )
    parser.add_argument("--debug", default=False, **debug)
    added = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands: dict[str, argparse.ArgumentParser] = {}
    for name, (summary, about, examples, options) in COMMANDS.items():
        words = [
            OPTIONS[word]["metavar"]
            for word in options.split()
            if not word.startswith("-")
        ]
        command = added.add_parser(
            name,
            # All options would take so many lines that an error below was not seen.
            usage=" ".join(["bisvm", name, *words, "[options]"]),
            help=summary,
            description=about,
            epilog=f"examples:\n{examples}",
            **style,
        )
        for option in options.split():
            given = IN_COMMAND.get((name, option), OPTIONS[option])
            command.add_argument(option, **given)
        # Before the command or after it; after it, it must not undo the first.
        command.add_argument("--debug", default=argparse.SUPPRESS, **debug)
        commands[name] = command
    return parser, commands


def _unknown_command(word: str) -> str:
    """Say what to type instead of a word that is no command."""
    if Path(word).is_file():
        return f"a command comes first. Did you mean bisvm tune {word}?"
    return (
        f"there is no command {word!r}; there are {', '.join(COMMANDS)}."
        f"{did_you_mean(word, COMMANDS)}"
    )


def _not_expected(options: argparse.Namespace, extra: Sequence[str]) -> str:
    """Say what to type instead of words that a command does not know."""
    asked = next((word for word in extra if word.startswith("-")), None)
    if asked is None:
        hint = ""
        if getattr(options, "target", "") is None:
            hint = f" Did you mean --target {extra[0]}?"
        return f"{extra[0]!r} is one word too many.{hint}"
    name = asked.partition("=")[0]
    own = _options_of(options.command)
    others = [one for one in COMMANDS if name in _options_of(one)]
    if others:
        return (
            f"{name} is an option of {' and '.join(others)}, not of {options.command}"
        )
    begun = [one for one in own if one.startswith(name) and len(name) > 2]
    hint = f" Did you mean {begun[0]}?" if begun else did_you_mean(name, own)
    return f"there is no option {name}.{hint}"


def _options_of(command: str | None) -> list[str]:
    own = COMMANDS[command].options.split() if command in COMMANDS else []
    return [*(word for word in own if word.startswith("-")), "--debug", "--help"]
