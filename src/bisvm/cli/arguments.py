"""Types of arguments: from a word of the command line to a value, or a message.

Modules of the commands take long to import, so names of kernels and criteria are
repeated here; a test compares them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

# Names, with what they mean to users of tables; "" is for experts.
KERNELS = {
    "auto": "chosen in cross-validation",
    "linear": "",
    "rbf": "Gaussian, one width for all columns; also called gaussian",
    "ard": "Gaussian, a width for each column",
    "poly": "polynomial",
    "laplacian": "for decisions at thresholds of single columns",
    "chi2": "for counts and histograms",
    "mkl": "a weighted sum of four kernels",
}
CRITERIA = {
    "auto": "for good probabilities",
    "auc": "for the ranking of the rows",
    "f1": "for F1",
    "smoothed_error": "for accuracy",
    "multinomial": "for probabilities of all classes together",
    "structural_risk": "without cross-validation",
    **dict.fromkeys(("blend", "calibrated_logistic", "calibrated_mse"), ""),
    **dict.fromkeys(("logistic", "mse", "hinge", "squared_hinge"), ""),
}
# Before the name of a criterion, it gives all classes the same weight.
BALANCED = "balanced_"


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return a hint at the most similar word, to append to a message."""
    names = {word.lower(): word for word in known}
    similar = get_close_matches(given.lower(), names, n=1)
    return f" Did you mean {names[similar[0]]}?" if similar else ""


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


count = _number(int, lambda n: n >= 1, "a whole number of at least 1")
folds = _number(int, lambda n: n >= 2, "a whole number of at least 2")
lines = _number(int, lambda n: n >= 0, "a whole number from 0")
seed = _number(int, lambda n: 0 <= n < 2**32, "a whole number from 0")
share = _number(float, lambda x: 0 <= x <= 0.9, "a share from 0 to 0.9")
coverage = _number(float, lambda x: 0 < x < 1, "a share between 0 and 1")
seconds = _number(float, lambda x: 0 < x < math.inf, "a positive number of seconds")


def _choice(words: dict[str, str], wanted: str) -> Callable[[str], str]:
    """Accept a word for a character, or the character itself."""
    known = {**words, **{sign: sign for sign in words.values()}}

    def read(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(f"expected {wanted}, got {text!r}")
        return known[text]

    return read


decimal = _choice({"point": ".", "comma": ","}, "point or comma")
separator = _choice(
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


def _named(
    kind: str,
    meanings: Mapping[str, str],
    others: Mapping[str, str],
) -> Callable[[str], str]:
    """Accept a name that `meanings` has, or another one.

    others : further names, and what each of them stands for
    """
    known = {**{name: name for name in meanings}, **others}

    def read(text: str) -> str:
        if text not in known:
            shown = [
                f"{one} ({said})" if said else one for one, said in meanings.items()
            ]
            raise argparse.ArgumentTypeError(
                f"there is no {kind} {text!r}; expected {', '.join(shown)}."
                f"{did_you_mean(text, known)}"
            )
        return known[text]

    return read


def file_ending(ending: str, *more: str) -> Callable[[str], Path]:
    """Accept the name of a file with this ending, or of a device."""

    def read(text: str) -> Path:
        path = Path(text)
        # A device such as /dev/stdout has no ending.
        device = path.exists() and not path.is_file() and not path.is_dir()
        if path.suffix.lower() not in (ending, *more) and not device:
            better = path.with_suffix(ending) if path.name else f"name{ending}"
            raise argparse.ArgumentTypeError(
                f"expected a file that ends in {ending}, such as {better}, got {text!r}"
            )
        return path

    return read


def _by_class(
    words: tuple[str, ...], zero: bool
) -> Callable[[str], str | tuple[str, float]]:
    """Accept one of some words, or CLASS=NUMBER.

    zero : whether the number may be zero
    """
    above = "of at least 0" if zero else "above 0"

    def read(text: str) -> str | tuple[str, float]:
        if text in words:
            return text
        name, sign, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not (sign and 0 <= value < math.inf and (zero or value > 0)):
            known = ", ".join(words)
            raise argparse.ArgumentTypeError(
                f"expected {known} or CLASS=NUMBER with a number {above}, got {text!r}."
                f"{did_you_mean(text, words)}"
            )
        return name, value

    return read


def encoding(text: str) -> str:
    """Accept the name of an encoding that Python has."""
    try:
        "".encode(text)
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(
            f"expected an encoding such as utf-8, cp1250 or latin-1, got {text!r}"
        ) from None
    return text.lower()


def date(text: str) -> tuple[str, str]:
    """Accept COLUMN=FORMAT."""
    name, sign, form = text.rpartition("=")
    if not (name and sign and "%" in form):
        raise argparse.ArgumentTypeError(
            f"expected COLUMN=FORMAT, such as day=%d/%m/%Y, got {text!r}"
        )
    return name, form


def in_words(meanings: Mapping[str, str]) -> str:
    """Names with their meanings, for the help."""
    shown = [
        f"'{one}' ({said})" if said else f"'{one}'" for one, said in meanings.items()
    ]
    return ", ".join(shown)


kernel = _named("kernel", KERNELS, {"gaussian": "rbf"})
_weighted = [f"{BALANCED}{name}" for name in CRITERIA if name != "structural_risk"]
criterion = _named("criterion", CRITERIA, {name: name for name in _weighted})
class_weight = _by_class(("balanced", "learn"), zero=True)
threshold = _by_class(("accuracy", "balanced_accuracy", "f1"), zero=False)
