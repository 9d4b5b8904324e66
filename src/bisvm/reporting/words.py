"""What a machine has learned, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

# What hyperparameters mean to somebody who has not read about them.
MEANINGS: Mapping[str, str] = {
    "C": "how much a wrong row counts against a simple rule",
    "gamma": "how quickly rows stop being alike as they differ",
    "offset": "how much low powers count in the polynomial",
    "weights": "how much each of the added kernels counts",
    "scale": "factors of the inputs",
    "filters": "what the machine looks for in images or signals",
    "lambda_w": "how strongly the weights of feature maps are held small",
    "lambda_f": "how strongly the filters are held small",
}


def hyperparameters_of(machine: Any) -> dict[str, Any]:
    """All that was learned, by name; a linear convolutional machine has strengths."""
    values = getattr(machine, "hyperparameters_", None)
    if values is not None:
        return dict(values)
    return {name: getattr(machine, f"{name}_") for name in ("lambda_w", "lambda_f")}


def in_words(name: str, value: Any) -> str:
    """One hyperparameter: its value or range, what it means, whether it is large."""
    value = np.asarray(value, dtype=float)
    last = name.split("__")[-1]
    shown = f"{name} = {_range(value)}"
    meaning = MEANINGS.get(last, "a parameter of the kernel")
    return f"{shown}: {meaning}{_size(last, value)}"


def _range(value: np.ndarray) -> str:
    if value.size == 1:
        return f"{value.item():.4g}"
    low, high = f"{value.min():.3g}", f"{value.max():.3g}"
    if low == high:
        return f"{low} ({value.size} values alike)"
    return f"{low} to {high} ({value.size} values)"


def _size(name: str, value: np.ndarray) -> str:
    typical = float(np.exp(np.mean(np.log(np.maximum(value, 1e-300)))))
    if name == "C":
        words = ("; small: a simple rule", "; large: the rows are followed closely")
        return words[0] if typical < 0.1 else words[1] if typical > 10 else ""
    if name == "gamma" and value.size > 1 and value.max() > 100 * value.min():
        return "; inputs with a small one hardly count"
    return ""


def expected_in_words(score: Any) -> str:
    low, high = score.interval()
    return (
        f"On new rows {score.value:.1%} are expected to be right (90% interval "
        f"{low:.1%} to {high:.1%}), by the folds."
    )


def certificates_of(machine: Any) -> list[Any]:
    given = machine.certificate_
    return list(given) if isinstance(given, list) else [given]


def certificate_in_words(one: Any) -> list[str]:
    done = "Both levels are" if one.converged else "NOT both levels are"
    return [
        f"Certificate: {done} solved. {one.reason}",
        f"  residual of the final machine {one.final_residual:.1e}, of those on "
        f"the folds {one.lower_residual:.1e};",
        f"  slope of the validation loss {one.upper_gradient:.1e} of its value.",
    ]
