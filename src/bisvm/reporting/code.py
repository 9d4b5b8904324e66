"""The Python lines that rebuild a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import Parameter, signature

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from bisvm.estimators.pipelines import last_step
from bisvm.selection.comparison import fixed
from bisvm.tables import ColumnTypes

# Names to import, by module.
Imports = dict[str, set[str]]
# Settings of the original run that do not change the model.
OMITTED = ("callback", "checkpoint", "verbose", "n_jobs")


def relearn_lines(model: BaseEstimator, fit_params: Sequence[str] = ()) -> list[str]:
    """Code that repeats the search.

    fit_params : names of the arguments that `fit` got in addition to X and y
    """
    lines = _lines(model, last_step(model), "the settings of the search")
    return [*lines, _fit_line(model, "X", fit_params)]


def rebuild_lines(
    model: BaseEstimator, fit_params: Sequence[str] = ()
) -> list[str] | None:
    """Code that fits at the learned values; None if no estimator can have them."""
    machine = last_step(model)
    held = fixed(machine)
    if held is None:
        return None
    own = getattr(machine, "machine_", machine)
    lines = _lines(model, held, "the learned values")
    # The kernel of a convolutional machine takes images as rows.
    rows = "X" if own is machine else "X.reshape(len(X), -1)"
    weights = [name for name in fit_params if name == "sample_weight"]
    return [*lines, _fit_line(model, rows, weights)]


def _fit_line(model: BaseEstimator, rows: str, names: Sequence[str]) -> str:
    step = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    return f"model.fit({', '.join([rows, 'y', *(f'{step}{n}={n}' for n in names)])})"


def _lines(model: BaseEstimator, machine: BaseEstimator, comment: str) -> list[str]:
    imports: Imports = {}
    text = source(machine, imports, omitted=OMITTED)
    lines = [f"# {comment}", f"machine = {text}", _model_line(model, imports)]
    heads = [
        f"from {home} import {', '.join(sorted(names))}"
        for home, names in sorted(imports.items())
    ]
    numpy = ["import numpy as np"] if "np.array(" in "\n".join(lines) else []
    return [*numpy, *heads, "", *lines]


def _model_line(model: BaseEstimator, imports: Imports) -> str:
    """The pipeline around the machine."""
    if not isinstance(model, Pipeline):
        return "model = machine"
    if isinstance(model[0], ColumnTypes):
        imports.setdefault("bisvm.tables", set()).add("pipeline_for")
        params = {name: list(own) for name, own in model[0].get_params().items()}
        more = [f"{name}={value!r}" for name, value in params.items() if value]
        more += ["histograms=True"] if _takes_histograms(model) else []
        return f"model = pipeline_for({', '.join(['X', 'machine', *more])})"
    imports.setdefault("sklearn.pipeline", set()).add("Pipeline")
    steps = [f"({name!r}, {source(step, imports)})" for name, step in model.steps[:-1]]
    steps.append(f"({model.steps[-1][0]!r}, machine)")
    return f"model = Pipeline([{', '.join(steps)}])"


def _takes_histograms(model: Pipeline) -> bool:
    steps = {name: step for name, step, _ in model[1].transformers_}
    return "numbers" in steps and isinstance(steps["numbers"][-1], MinMaxScaler)


def source(value: object, imports: Imports, omitted: Sequence[str] = ()) -> str:
    """Python that makes a value; `imports` collects what it needs."""

    def inner(values: Sequence[object]) -> str:
        return ", ".join(source(one, imports) for one in values)

    if isinstance(value, BaseEstimator):
        kind = type(value)
        imports.setdefault(_home(kind), set()).add(kind.__name__)
        arguments = [
            f"{name}={source(own, imports)}"
            for name, own in value.get_params(deep=False).items()
            if name not in omitted and not _is_default(kind, name, own)
        ]
        return f"{kind.__name__}({', '.join(arguments)})"
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r})"
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, Mapping):
        pairs = [f"{inner([k])}: {inner([v])}" for k, v in value.items()]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{inner(value)}]"
    if isinstance(value, tuple):
        return f"({inner(value)},)" if len(value) == 1 else f"({inner(value)})"
    return repr(value)


def _is_default(kind: type, name: str, own: object) -> bool:
    default = signature(kind).parameters[name].default
    if default is Parameter.empty:
        return False
    return own is default or repr(own) == repr(default)


def _home(kind: type) -> str:
    """The shortest name of a module that exports the class."""
    parts = kind.__module__.split(".")
    for length in range(1, len(parts)):
        home = ".".join(parts[:length])
        if getattr(import_module(home), kind.__name__, None) is kind:
            return home
    return kind.__module__
