"""Inputs of estimators that hypothesis draws: arrays, labels, weights and splitters.

An input is a recipe, a choice of names below and a seed, so that an example that fails
is short to read and to repeat: `Input("rbf", "nullable", "normal", "text", ...)`.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from bisvm import (
    BilevelLinearSVC,
    BilevelSVC,
    ConvolutionalLinearSVC,
    ConvolutionalSVC,
    FeatureSelector,
)

QUICK: dict[str, Any] = {"starts": 1, "max_iter": 2, "random_state": 0}
BRIEF: dict[str, Any] = {"max_iter": 2, "random_state": 0}
Make = Callable[..., Any]

ESTIMATORS: dict[str, Make] = {
    "auto": lambda **s: BilevelSVC(**BRIEF, **s),
    "rbf": lambda **s: BilevelSVC("rbf", **QUICK, **s),
    "ard": lambda **s: BilevelSVC("ard", **QUICK, **s),
    "ovo": lambda **s: BilevelSVC("rbf", multi_class="ovo", shared=False, **QUICK, **s),
    "laplacian": lambda **s: BilevelSVC("laplacian", **QUICK, **s),
    "chi2": lambda **s: BilevelSVC("chi2", **QUICK, **s),
    "landmarks": lambda **s: BilevelSVC("rbf", approximation="nystroem", **QUICK, **s),
    "ensemble": lambda **s: BilevelSVC("rbf", ensemble=2, **QUICK, **s),
    "hinge": lambda **s: BilevelSVC(
        "rbf", loss="hinge", criterion="hinge", **QUICK, **s
    ),
    "f1": lambda **s: BilevelSVC(
        "rbf", criterion="f1", threshold="accuracy", **QUICK, **s
    ),
    "linear": lambda **s: BilevelLinearSVC(**QUICK, **s),
    "linear hinge": lambda **s: BilevelLinearSVC(loss="hinge", **QUICK, **s),
    "per feature": lambda **s: BilevelLinearSVC(
        regularization="per_feature", **QUICK, **s
    ),
    "balanced": lambda **s: BilevelLinearSVC(class_weight="balanced", **QUICK, **s),
    "precomputed": lambda **s: BilevelSVC("precomputed", **QUICK, **s),
    "convolutional": lambda **s: ConvolutionalSVC(filter_shape=(1,), **BRIEF, **s),
    "convolutional linear": lambda **s: ConvolutionalLinearSVC(
        filter_shape=(1,), **BRIEF, **s
    ),
    "selector": lambda cv=2: FeatureSelector(
        BilevelLinearSVC(cv=cv, **QUICK), n_pairs=1, random_state=0
    ),
}

# --- numbers: functions of a generator and a shape ------------------------------------


def _with(value: float) -> Callable[[Any, Any], Any]:
    def numbers(rng: Any, shape: Any) -> Any:
        X = rng.normal(size=shape)
        X.flat[rng.integers(X.size)] = value
        return X

    return numbers


def _columns(*factors: float) -> Callable[[Any, Any], Any]:
    return lambda rng, shape: rng.normal(size=shape) * np.resize(factors, shape[1])


NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "whole": lambda rng, shape: rng.integers(0, 3, size=shape).astype(float),
    "zero or one": lambda rng, shape: rng.integers(0, 2, size=shape).astype(float),
    "constant column": _columns(0.0, 1.0),
    "large offset": lambda rng, shape: 1e9 + rng.normal(size=shape),
    "one distinct x": lambda rng, shape: np.tile(
        rng.normal(size=shape[1]), (shape[0], 1)
    ),
    "zeros": lambda rng, shape: np.zeros(shape),
    "duplicates": lambda rng, shape: rng.normal(size=shape)[np.arange(shape[0]) // 3],
    "spike": lambda rng, shape: np.eye(*shape),
    "outlier": _with(1e12),
    "NaN": _with(np.nan),
    "inf": _with(np.inf),
    "all NaN": lambda rng, shape: np.full(shape, np.nan),
    "huge": _columns(1e160),
    "large": _columns(1e100),
    "small": _columns(1e-100),
    "tiny": _columns(1e-160),
    "subnormal": _columns(1e-310),
    "mixed units": _columns(1e-100, 1.0, 1e100),
    "largest": _with(np.finfo(float).max),
}

# --- containers: functions of an array ------------------------------------------------


def _frame(dtype: str) -> Callable[[Any], Any]:
    def make(X: Any) -> Any:
        columns = [f"c{k}" for k in range(X.shape[1])]
        return pd.DataFrame(X, columns=columns).astype(dtype)

    return make


def _nullable(X: Any) -> Any:
    frame = _frame("Float64")(X)
    frame.iloc[0, 0] = pd.NA
    return frame


def _categorical(X: Any) -> Any:
    return pd.DataFrame(np.sign(X)).astype("category")


def _words(X: Any) -> Any:
    return pd.DataFrame(np.where(X > 0, "high", "low"))


def _masked(X: Any) -> Any:
    return np.ma.masked_array(X, mask=np.arange(X.size).reshape(X.shape) == 1)


def _object(X: Any) -> Any:
    X = X.astype(object)
    X[0, 0] = None
    return X


def _duplicate_names(X: Any) -> Any:
    return pd.DataFrame(X, columns=["a"] * X.shape[1])


def _mixed_names(X: Any) -> Any:
    return pd.DataFrame(X, columns=[0, *"bcdefgh"][: X.shape[1]])


CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "array": np.asarray,
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype("f4"),
    "float16": lambda X: X.astype("f2"),
    "longdouble": lambda X: X.astype(np.longdouble),
    "big-endian": lambda X: X.astype(">f8"),
    "int8": lambda X: np.nan_to_num(X).clip(-9, 9).astype("i1"),
    "bool": lambda X: X > 0,
    "object": lambda X: X.astype(object),
    "None": _object,
    "text": lambda X: X.astype(str),
    "complex": lambda X: X.astype(complex),
    "dates": lambda X: np.zeros(X.shape, dtype="M8[D]"),
    "masked": _masked,
    "unmasked": lambda X: np.ma.masked_array(X),
    "list": lambda X: X.tolist(),
    "ragged": lambda X: [*X.tolist()[:-1], []],
    "vector": lambda X: X[:, 0],
    "images": lambda X: X[:, :, None],
    "scalar": lambda X: X[0, 0],
    "nothing": lambda X: None,
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "one row": lambda X: X[:1],
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "csr matrix": sparse.csr_matrix,
    "dok": sparse.dok_array,
    "frame": _frame("float64"),
    "frame float32": _frame("float32"),
    "nullable": _frame("Float64"),
    "missing": _nullable,
    "frame object": _frame("object"),
    "categorical": _categorical,
    "words": _words,
    "duplicate names": _duplicate_names,
    "mixed names": _mixed_names,
    "series": lambda X: pd.Series(X[:, 0]),
    "gram": lambda X: X @ X.T,
}

# --- labels: functions of class numbers -----------------------------------------------


def _some_missing(values: Any, missing: Any) -> Any:
    values = np.array(values, dtype=object)
    values[0] = missing
    return values


_NAMES = np.array(["no", "yes", "maybe", "never"])

LABELS: dict[str, Callable[[Any], Any]] = {
    "int": np.asarray,
    "negative": lambda k: -3 * k,
    "large": lambda k: k.astype("i8") * 2**62,
    "uint8": lambda k: k.astype("u1"),
    "bool": lambda k: k > 0,
    "float": lambda k: k.astype(float),
    "halves": lambda k: 0.5 * k,
    "continuous": lambda k: k + 0.1 * np.arange(len(k)),
    "NaN": lambda k: np.where(np.arange(len(k)) == 0, np.nan, k),
    "inf": lambda k: np.where(k == 0, np.inf, k),
    "text": lambda k: _NAMES[k],
    "empty text": lambda k: np.array(["", "a", "b", "c"])[k],
    "bytes": lambda k: _NAMES.astype("S")[k],
    "object": lambda k: _NAMES[k].astype(object),
    "mixed": lambda k: np.array([0, "a", 2.5, b"c"], dtype=object)[k],
    "int and text": lambda k: np.array([0, "0", 1, "1"], dtype=object)[k],
    "tuples": lambda k: [(int(one), 0) for one in k],
    "None": lambda k: _some_missing(_NAMES[k], None),
    "object NaN": lambda k: _some_missing(_NAMES[k], np.nan),
    "objects of bool": lambda k: (k > 0).astype(object),
    "list": lambda k: k.tolist(),
    "list of text": lambda k: _NAMES[k].tolist(),
    "column": lambda k: k[:, None],
    "one-hot": lambda k: np.eye(4)[k],
    "two targets": lambda k: np.column_stack([k, k]),
    "series": pd.Series,
    "other index": lambda k: pd.Series(k, index=np.arange(len(k))[::-1] + 7),
    "nullable": lambda k: pd.Series(k, dtype="Int64"),
    "nullable bool": lambda k: pd.Series(k > 0, dtype="boolean"),
    "string": lambda k: pd.Series(_NAMES[k], dtype="string"),
    "missing string": lambda k: pd.Series(
        _some_missing(_NAMES[k], pd.NA), dtype="string"
    ),
    "missing": lambda k: pd.Series(_some_missing(k, pd.NA), dtype="Int64"),
    "categorical": lambda k: pd.Series(pd.Categorical(_NAMES[k], categories=_NAMES)),
    "Categorical": lambda k: pd.Categorical(_NAMES[k]),
    "missing category": lambda k: pd.Categorical(_some_missing(_NAMES[k], None)),
    "frame": lambda k: pd.DataFrame({"y": k}),
    "dates": lambda k: np.array(["2020-01-01"], dtype="M8[D]") + k,
    "complex": lambda k: k.astype(complex),
    "masked": lambda k: np.ma.masked_array(k, mask=np.arange(len(k)) == 0),
    "sparse": lambda k: sparse.csr_array(k[:, None]),
    "one class": lambda k: np.zeros_like(k),
    "all different": lambda k: np.arange(len(k)),
    "one member": lambda k: np.arange(len(k)) == 0,
    "short": lambda k: k[:-1],
    "nothing": lambda k: None,
    "scalar": lambda k: 1,
}

# --- weights and groups: functions of the number of rows ------------------------------

WEIGHTS: dict[str, Callable[[int], Any]] = {
    "none": lambda n: None,
    "ones": np.ones,
    "list": lambda n: [1] * n,
    "linear": lambda n: np.linspace(0.1, 2.0, n),
    "some zero": lambda n: np.arange(n) % 3,
    "one positive": lambda n: np.arange(n) == 0,
    "zero": np.zeros,
    "negative": lambda n: np.arange(n) - 1.0,
    "NaN": lambda n: np.where(np.arange(n) == 1, np.nan, 1.0),
    "inf": lambda n: np.where(np.arange(n) == 1, np.inf, 1.0),
    "huge": lambda n: np.full(n, 1e300),
    "tiny": lambda n: np.full(n, 1e-300),
    "wide range": lambda n: np.geomspace(1e-200, 1e200, n),
    "subnormal": lambda n: np.full(n, 5e-324),
    "short": lambda n: np.ones(n - 1),
    "column": lambda n: np.ones((n, 1)),
    "table": lambda n: np.ones((n, 2)),
    "number": lambda n: 2.0,
    "text": lambda n: ["heavy"] * n,
    "None": lambda n: [None] * n,
    "object": lambda n: np.ones(n).astype(object),
    "bool": lambda n: np.arange(n) % 4 > 0,
    "series": lambda n: pd.Series(np.ones(n), index=np.arange(n) + 5),
    "nullable": lambda n: pd.Series(np.ones(n), dtype="Float64"),
    "missing": lambda n: pd.Series([pd.NA] + [1.0] * (n - 1), dtype="Float64"),
    "masked": lambda n: np.ma.masked_array(np.ones(n), mask=np.arange(n) == 0),
    "complex": lambda n: np.ones(n, dtype=complex),
}

GROUPS: dict[str, Callable[[int], Any]] = {
    "none": lambda n: None,
    "pairs": lambda n: np.arange(n) // 2,
    "alone": np.arange,
    "text": lambda n: [f"g{k % 3}" for k in range(n)],
    "one": lambda n: np.zeros(n),
    "NaN": lambda n: np.where(np.arange(n) == 0, np.nan, np.arange(n) // 2),
    "missing": lambda n: pd.Series([pd.NA] + [1] * (n - 1), dtype="Int64"),
    "mixed": lambda n: np.array(["a", 1] * n, dtype=object)[:n],
    "nullable": lambda n: pd.Series(np.arange(n) // 2, dtype="Int64"),
    "categorical": lambda n: pd.Categorical([f"g{k % 3}" for k in range(n)]),
    "short": lambda n: np.arange(n - 1),
    "table": lambda n: np.ones((n, 2)),
}

# --- splits: functions of the number of rows ------------------------------------------


class Yields:
    """A splitter that yields what it is given."""

    def __init__(self, *pairs: Any) -> None:
        self.pairs = pairs

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        yield from self.pairs

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return len(self.pairs)


def _halves(n: int) -> list[Any]:
    odd = np.arange(n) % 4 < 2
    first, second = np.flatnonzero(odd), np.flatnonzero(~odd)
    return [(first, second), (second, first)]


def _exhausted(n: int) -> Any:
    pairs = iter(_halves(n))
    list(pairs)
    return pairs


SPLITS: dict[str, Callable[[int], Any]] = {
    "2": lambda n: 2,
    "5": lambda n: 5,
    "many": lambda n: 50,
    "numpy": lambda n: np.int64(3),
    "1": lambda n: 1,
    "0": lambda n: 0,
    "negative": lambda n: -2,
    "True": lambda n: True,
    "float": lambda n: 2.0,
    "None": lambda n: None,
    "text": lambda n: "2",
    "object": lambda n: object(),
    "KFold": lambda n: KFold(2),
    "too many": lambda n: KFold(50),
    "stratified": lambda n: StratifiedKFold(2),
    "shuffled": lambda n: ShuffleSplit(2, random_state=0),
    "leave one out": lambda n: LeaveOneOut(),
    "time series": lambda n: TimeSeriesSplit(2),
    "repeated": lambda n: RepeatedKFold(n_splits=2, n_repeats=2, random_state=0),
    "by groups": lambda n: GroupKFold(2),
    "predefined": lambda n: PredefinedSplit(np.arange(n) % 3 - 1),
    "pairs": _halves,
    "generator": lambda n: iter(_halves(n)),
    "exhausted": _exhausted,
    "zip": lambda n: zip(*zip(*_halves(n), strict=True), strict=True),
    "lists": lambda n: [(a.tolist(), b.tolist()) for a, b in _halves(n)],
    "masks": lambda n: [(np.arange(n) % 4 < 2, np.arange(n) % 4 > 1)],
    "short masks": lambda n: [(np.arange(n - 1) % 4 < 2, np.arange(n - 1) % 4 > 1)],
    "overlapping": lambda n: [(np.arange(n), np.arange(n))],
    "left out": lambda n: [(np.arange(n // 2), np.arange(n // 2, n - 1))],
    "repeated rows": lambda n: [(np.r_[a, a], np.r_[b, b]) for a, b in _halves(n)],
    "no training": lambda n: [([], np.arange(n))],
    "no validation": lambda n: [(np.arange(n), [])],
    "beyond": lambda n: [(np.arange(n), [n])],
    "from the end": lambda n: [(np.arange(n - 2), [-1, -2])],
    "floats": lambda n: [(a.astype(float), b) for a, b in _halves(n)],
    "words": lambda n: [(["a"], ["b"])],
    "triples": lambda n: [(a, b, b) for a, b in _halves(n)],
    "numbers": lambda n: [0, 1],
    "array": lambda n: np.arange(n),
    "frames": lambda n: [(pd.Index(a), pd.Series(b)) for a, b in _halves(n)],
    "yields nothing": lambda n: Yields(),
    "yields None": lambda n: Yields(None),
    "yields halves": lambda n: Yields(*_halves(n)),
    "a class": lambda n: KFold,
    "a table": lambda n: np.zeros((2, 2, n // 2 + 1), dtype=int),
}

# --- inputs ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Input:
    """Names from the tables above, and the numbers that make data of them."""

    estimator: str = "rbf"
    container: str = "array"
    numbers: str = "normal"
    labels: str = "int"
    weights: str = "none"
    groups: str = "none"
    splits: str = "2"
    n: int = 12
    d: int = 3
    n_classes: int = 2
    seed: int = 0

    def data(self) -> tuple[Any, Any]:
        rng = np.random.default_rng(self.seed)
        with np.errstate(all="ignore"):
            X = NUMBERS[self.numbers](rng, (self.n, self.d))
            X = CONTAINERS[self.container](X)
        return X, LABELS[self.labels](np.arange(self.n) % self.n_classes)


def usual(names: Any, first: str) -> st.SearchStrategy[str]:
    """Mostly the first name: an input has few odd parts, and many can be fitted."""
    return st.sampled_from([first] * 5 * len(names) + sorted(names))


# Strengths start from 0.1 in the units of X, and large units take a hundred times as
# long.
SLOW = ("large", "outlier", "large offset", "mixed units")


def drawn() -> st.SearchStrategy[Input]:
    """Inputs with few odd parts, of all estimators."""
    found = st.builds(
        Input,
        estimator=st.sampled_from(list(ESTIMATORS)),
        container=usual(CONTAINERS, "array"),
        numbers=usual(NUMBERS, "normal"),
        labels=usual(LABELS, "int"),
        weights=usual(WEIGHTS, "none"),
        groups=usual(GROUPS, "none"),
        splits=usual(SPLITS, "2"),
        n=st.sampled_from([12, 16, 8, 20, 2, 3, 5, 7]),
        d=st.integers(1, 4),
        n_classes=st.integers(2, 4),
        seed=st.integers(0, 3),
    )
    return found.filter(
        lambda one: one.estimator != "convolutional linear" or one.numbers not in SLOW
    )


def check_input(given: Input) -> str:
    """Fit and predict: right, or refused in clear words. Returns which of the two."""
    X, y = given.data()
    model = ESTIMATORS[given.estimator](cv=SPLITS[given.splits](given.n))
    weight, groups = WEIGHTS[given.weights](given.n), GROUPS[given.groups](given.n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y, sample_weight=weight, groups=groups)
            _check_answers(model, X)
        except (TypeError, ValueError) as error:
            _check_words(error)
            return "refused"
    _check_warnings(caught)
    return "fitted"


def _check_answers(model: Any, X: Any) -> None:
    """Predictions are classes of y, decision values finite, one for each row."""
    if hasattr(model, "get_support"):
        assert model.get_support().shape == (model.n_features_in_,)
        return
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    predicted = model.predict(X)
    assert predicted.shape == (n,)
    assert set(predicted.tolist()) <= set(model.classes_.tolist())
    decision = model.decision_function(X)
    assert decision.shape[0] == n and np.isfinite(decision).all()
    assert np.isfinite(model.criterion_value_)


def _check_words(error: Exception) -> None:
    """The error comes from our code, or from scikit-learn's checks of its input."""
    frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    assert "/bisvm/" in frames[-1] or "/sklearn/" in frames[-1], frames[-1]
    assert len(str(error)) > 20, error
    assert type(error).__module__.partition(".")[0] in ("builtins", "bisvm")


def _check_warnings(caught: Any) -> None:
    own = (ConvergenceWarning, UserWarning)
    foreign = [one for one in caught if not issubclass(one.category, own)]
    assert not foreign, {(one.filename, str(one.message)) for one in foreign}
