"""The Python lines that make a model again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from bisvm.reporting.comparison import fixed
from bisvm.tables import ColumnTypes


def relearn_lines(model: Any, given: Sequence[str] = ()) -> list[str]:
    """The same search again: with a number for random_state, the same model.

    given : what `fit` was given beside X and y, by name
    """
    machine = _machine(model)
    lines = _lines(model, machine, "the settings of the search")
    return [*lines, _fit_line(model, "X", given)]


def rebuild_lines(model: Any, given: Sequence[str] = ()) -> list[str] | None:
    """The learned values, and no search; None where no estimator can be given them."""
    machine = _machine(model)
    held = fixed(machine)
    if held is None:
        return None
    own = getattr(machine, "machine_", machine)
    if hasattr(own, "refit_C_"):
        # The final machine's C, for the final machine.
        held.set_params(C=own.refit_C_)
    lines = _lines(model, held, "the values that were learned")
    # The kernel of a convolutional machine takes images as rows.
    rows = "X" if own is machine else "X.reshape(len(X), -1)"
    weights = [name for name in given if name == "sample_weight"]
    return [*lines, _fit_line(model, rows, weights)]


def _fit_line(model: Any, rows: str, given: Sequence[str]) -> str:
    step = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    return f"model.fit({', '.join([rows, 'y', *(f'{step}{n}={n}' for n in given)])})"


def _machine(model: Any) -> Any:
    return model[-1] if isinstance(model, Pipeline) else model


def _lines(model: Any, machine: Any, what: str) -> list[str]:
    imports: dict[str, set[str]] = {}
    own = ("callback", "checkpoint", "verbose", "n_jobs")
    text = source(machine, imports, leave_out=own)
    lines = [f"# {what}", f"machine = {text}", *_around(model, imports)]
    heads = [
        f"from {home} import {', '.join(sorted(names))}"
        for home, names in sorted(imports.items())
        if names
    ]
    numpy = ["import numpy as np"] if "np.array(" in "\n".join(lines) else []
    return [*numpy, *heads, "", *lines]


def _around(model: Any, imports: dict[str, set[str]]) -> list[str]:
    """The pipeline in front of the machine."""
    if not isinstance(model, Pipeline):
        return ["model = machine"]
    if isinstance(model[0], ColumnTypes):
        imports.setdefault("bisvm.tables", set()).add("pipeline_for")
        types = model[0]
        given = {name: list(own) for name, own in types.get_params().items()}
        more = [f"{name}={value!r}" for name, value in given.items() if value]
        more += ["histograms=True"] if _takes_histograms(model) else []
        front = f"model = pipeline_for({', '.join(['X', 'machine', *more])})"
        return [front]
    imports.setdefault("sklearn.pipeline", set()).add("Pipeline")
    steps = [f"({name!r}, {source(step, imports)})" for name, step in model.steps[:-1]]
    steps.append(f"({model.steps[-1][0]!r}, machine)")
    return [f"model = Pipeline([{', '.join(steps)}])"]


def _takes_histograms(model: Pipeline) -> bool:
    numbers = dict((name, step) for name, step, _ in model[1].transformers_)
    scale = numbers.get("numbers")
    return scale is not None and isinstance(scale[-1], MinMaxScaler)


def source(
    value: Any, imports: dict[str, set[str]], leave_out: tuple[str, ...] = ()
) -> str:
    """Python that makes a value again, and what it has to import."""
    if isinstance(value, BaseEstimator):
        kind = type(value)
        imports.setdefault(_home(kind), set()).add(kind.__name__)
        given = [
            f"{name}={source(own, imports)}"
            for name, own in value.get_params(deep=False).items()
            if name not in leave_out and not _is_default(kind, name, own)
        ]
        return f"{kind.__name__}({', '.join(given)})"
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r})"
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, Mapping):
        pairs = [
            f"{source(k, imports)}: {source(v, imports)}" for k, v in value.items()
        ]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(source(one, imports) for one in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def _is_default(kind: type, name: str, own: Any) -> bool:
    default = signature(kind).parameters[name].default
    if default is Parameter.empty:
        return False
    return own is default or repr(own) == repr(default)


def _home(kind: type) -> str:
    """The shortest module that has the class, as one imports it."""
    parts = kind.__module__.split(".")
    for length in range(1, len(parts)):
        home = ".".join(parts[:length])
        if getattr(import_module(home), kind.__name__, None) is kind:
            return home
    return kind.__module__
