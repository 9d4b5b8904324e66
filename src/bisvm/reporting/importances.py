"""How much predictions need the columns of a table, and in which direction they act."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from bisvm.core.types import Array, UserData, UserVector
from bisvm.estimators.importance import R2, Importance
from bisvm.estimators.pipelines import inputs_of_last_step, last_step
from bisvm.reporting.words import LEVEL, listing
from bisvm.tables import ColumnTypes
from bisvm.tables.preparing import columns_of

# With fewer rows held out from the search, its own splits judge the columns: there are
# more rows in them.
ENOUGH_ROWS = 50
# With more columns, each of little weight, shuffling takes too long.
MOST_COLUMNS = 1000
# Columns that are named in a sentence.
MOST_NAMES = 4


def column_importance(
    model: BaseEstimator,
    X: UserData,
    X_test: UserData = None,
    y_test: Array | None = None,
    groups: UserVector = None,
) -> Importance | None:
    """By how much predictions get worse without a column; None if it is not known.

    Parameters
    ----------
    model : fitted classifier or regressor, or a pipeline that ends with one
    X : the rows that it was fitted on
    X_test, y_test : rows that were held out; they are used if there are enough
    groups : of the rows X, which belong together
    """
    machine = last_step(model)
    # Machines on precomputed kernels, images and rows in blocks have none.
    if not hasattr(machine, "importance") or machine.n_features_in_ > MOST_COLUMNS:
        return None
    names = _names(model, machine)
    try:
        if y_test is not None and len(y_test) >= ENOUGH_ROWS:
            inputs = inputs_of_last_step(model, X_test)
            found = machine.importance(inputs, y_test, names)
        else:
            inputs = inputs_of_last_step(model, X)
            found = machine.importance(inputs, None, names, groups)
    except ValueError:
        return None
    shown: Importance = found
    return shown


def _names(model: BaseEstimator, machine: BaseEstimator) -> list[str] | None:
    """For every input of the machine, the column that it comes from."""
    if isinstance(model, Pipeline) and isinstance(model[0], ColumnTypes):
        return columns_of(model)
    if isinstance(model, Pipeline) and not hasattr(machine, "feature_names_in_"):
        return columns_of(model)
    return None


def coefficients(model: BaseEstimator) -> dict[str, float] | None:
    """Coefficients of a linear machine of one task, in standardised units.

    That of an input is by how much the decision value, or the number predicted, rises
    if the input rises by its standard deviation; the largest first. None for other
    machines.
    """
    machine = last_step(model)
    coef, scale = getattr(machine, "coef_", None), machine.feature_scale_
    if coef is None or scale is None or len(coef) != 1:
        return None
    names = _input_names(model, machine)
    values = np.asarray(coef)[0] * scale
    order = np.argsort(-np.abs(values), kind="stable")
    return {names[k]: float(values[k]) for k in order}


def _input_names(model: BaseEstimator, machine: BaseEstimator) -> list[str]:
    """Names of the machine's inputs, as people write them: sex = male."""
    if not (isinstance(model, Pipeline) and isinstance(model[0], ColumnTypes)):
        given = getattr(machine, "feature_names_in_", range(machine.n_features_in_))
        return [str(name) for name in given]
    found: list[str] = []
    for name, own in zip(
        columns_of(model), model[1].get_feature_names_out(), strict=True
    ):
        kind, _, rest = str(own).partition("__")
        category = rest.removeprefix(f"{name}_")
        found.append(f"{name} = {category}" if kind == "categories" else name)
    return found


def most_important(importance: Importance) -> str:
    """Which columns matter beyond chance, and how much the first of them."""
    low, high = importance.interval()
    certain = np.flatnonzero(low > 0)
    first = int(certain[0]) if len(certain) else 0
    name = importance.names[first]
    fall, least, most = (
        importance.in_words(one[first]) for one in (importance.values, low, high)
    )
    points = "" if importance.measure == R2 else " percentage points"
    shuffled = f"{importance.measure} falls by {fall}{points} if it is shuffled"
    interval = f"{LEVEL:.0%} interval {least} to {most}"
    if not len(certain):
        return (
            f"No column is certain to matter. {name} comes first: {shuffled}, but that "
            f"may be chance ({interval})."
        )
    if len(certain) == 1:
        return f"{name} matters beyond chance: {shuffled} ({interval})."
    names = [importance.names[k] for k in certain[:MOST_NAMES]]
    more = len(certain) - len(names)
    names += [f"{more} more"] if more else []
    return (
        f"{listing(names)} matter beyond chance. {name} comes first: {shuffled} "
        f"({interval})."
    )
