"""ONNX models, run by onnxruntime, against `decision_function` and `predict`."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import bisvm
from bisvm import (
    BilevelLinearSVC,
    BilevelLinearSVR,
    BilevelSVC,
    BilevelSVR,
    ConvolutionalLinearSVC,
    ConvolutionalSVC,
)
from bisvm.kernels import KERNELS, RBF, FilterBank, Linear, Matern, Polynomial
from bisvm.transforms import (
    Convolution2D,
    Nonlinearity,
    Normalize,
    Pool2D,
    Projection,
    Scale,
)

pytest.importorskip("skl2onnx")
runtime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = load_iris(return_X_y=True)
X, Y = X[::3], Y[::3]
NAMES = np.array(["setosa", "versicolor", "virginica"])
QUICK = dict(cv=3, max_iter=2, starts=1, random_state=0)
MAPS = {
    kind: RBF(0.1) @ Nonlinearity(kind) @ Projection(np.eye(4)[:3] - 0.3)
    for kind in ("relu", "softplus", "abs", "square", "tanh", "root", "log")
}
MODELS = {
    **{name: (BilevelSVC(name, **QUICK), X, Y) for name in KERNELS},
    **{kind: (BilevelSVC(k, learn="C", **QUICK), X, Y) for kind, k in MAPS.items()},
    "two classes": (BilevelSVC(**QUICK), X, Y == 1),
    "text labels": (BilevelSVC(**QUICK), X, NAMES[Y]),
    "threshold": (BilevelSVC("rbf", threshold="f1", **QUICK), X, Y == 1),
    "pairs of classes": (BilevelSVC("rbf", multi_class="ovo", **QUICK), X, Y),
    "each class its own": (BilevelSVC("rbf", shared=False, **QUICK), X, Y),
    "precomputed": (BilevelSVC("precomputed", **QUICK), X @ X.T, Y),
    "linear machine": (BilevelLinearSVC(**QUICK), X, Y),
    "sparse": (BilevelSVC(**QUICK), sparse.csr_array(X), Y),
    "nested": (
        BilevelSVC(
            RBF(per_feature=True).on([0, 3]) * Matern(2.5).on([1])
            + Polynomial(2)
            + Linear() @ Scale(2.0),
            **QUICK,
        ),
        X,
        Y,
    ),
    "normalised": (BilevelSVC(RBF() @ Normalize(center=True), **QUICK), X, Y),
    "filters": (
        ConvolutionalLinearSVC((2, 2), (2, 1), max_iter=2, random_state=0),
        X,
        Y,
    ),
    "filters in a kernel": (
        ConvolutionalSVC((2, 2), (2, 1), kernel="rbf", max_iter=2, random_state=0),
        X,
        Y,
    ),
    "a stack of filters": (
        BilevelSVC(
            RBF()
            @ Pool2D((1, 2))
            @ Nonlinearity("abs")
            @ Convolution2D(n_filters=2, filter_shape=(2, 1), shape=(2, 2)),
            **QUICK,
        ),
        X,
        Y,
    ),
    "pipeline": (
        make_pipeline(StandardScaler(), BilevelSVC("ard", **QUICK)),
        X,
        NAMES[Y],
    ),
}


def run(written, inputs):
    session = runtime.InferenceSession(
        written.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run([one.name for one in session.get_outputs()], inputs)


@pytest.mark.parametrize("name", MODELS)
def test_the_runtime_gives_the_same_scores_and_labels(name):
    model, inputs, labels = MODELS[name]
    model.fit(inputs, labels)
    dense = inputs.toarray() if sparse.issparse(inputs) else inputs
    found, scores, *probabilities = run(bisvm.to_onnx(model), {"X": dense})
    expected = model.decision_function(inputs)
    assert scores.shape == expected.shape and scores.dtype == np.float64
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
    assert np.array_equal(found, model.predict(inputs))
    assert len(probabilities) == hasattr(model, "predict_proba")
    for p in probabilities:
        np.testing.assert_allclose(p, model.predict_proba(inputs), atol=1e-9)


def test_single_precision_and_frames():
    model = make_pipeline(StandardScaler(), BilevelSVC(**QUICK)).fit(X, Y)
    single = X.astype(np.float32)
    found, scores, _ = run(bisvm.to_onnx(model, single), {"X": single})
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-4)
    frame = pd.DataFrame(
        {"a": X[:, 2], "b": X[:, 3], "c": np.array(["u", "v"])[Y // 2]}
    )
    model = make_pipeline(
        make_column_transformer(
            (StandardScaler(), ["a", "b"]),
            (OneHotEncoder(sparse_output=False), ["c"]),
        ),
        BilevelSVC(**QUICK),
    ).fit(frame, Y)
    given = {name: frame[[name]].to_numpy() for name in frame}
    found, scores, _ = run(bisvm.to_onnx(model, frame), given)
    np.testing.assert_allclose(scores, model.decision_function(frame), atol=1e-5)
    assert np.array_equal(found, model.predict(frame))


class Own(Linear):
    """A kernel that somebody else has written."""


def test_what_cannot_be_written_is_refused_with_the_reason():
    signals = np.random.default_rng(0).normal(size=(30, 16))
    labels = np.arange(30) % 2
    energies = BilevelSVC(FilterBank(2, 4, 4), **QUICK).fit(signals, labels)
    with pytest.raises(ValueError, match="neither linear nor a function of every"):
        bisvm.to_onnx(energies)
    own = BilevelSVC(Own() * RBF(), **QUICK).fit(X, Y)
    with pytest.raises(ValueError, match="Own is not a kernel that can be written"):
        bisvm.to_onnx(own)
    model = BilevelSVC(**QUICK).fit(X, Y)
    with pytest.raises(ValueError, match="too old"):
        bisvm.to_onnx(model, target_opset=12)
    model.classes_ = model.classes_ + 0.5
    with pytest.raises(ValueError, match="whole numbers or text"):
        bisvm.to_onnx(model)


@pytest.mark.parametrize(
    "model, target",
    [
        (BilevelSVR("rbf", **QUICK), X[:, 3]),
        (BilevelSVR("ard", **QUICK), X[:, 2:]),
        (BilevelSVR("rbf", shared=False, **QUICK), X[:, 2:]),
        (BilevelSVR("rbf", ensemble=2, **QUICK), X[:, 3]),
        (BilevelLinearSVR(**QUICK), X[:, 3]),
    ],
    ids=["one output", "two outputs", "on their own", "ensemble", "linear"],
)
def test_regression(model, target):
    rows = 100.0 * X
    fitted = make_pipeline(StandardScaler(), model).fit(rows, 5.0 + 20.0 * target)
    written = bisvm.to_onnx(fitted)
    session = runtime.InferenceSession(written.SerializeToString())
    (found,) = session.run(None, {"X": rows})
    expected = fitted.predict(rows).reshape(len(rows), -1)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    single = bisvm.to_onnx(fitted, rows.astype(np.float32))
    session = runtime.InferenceSession(single.SerializeToString())
    (found,) = session.run(None, {"X": rows.astype(np.float32)})
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_whole_numbers_give_doubles():
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import Int64TensorType

    rows = np.round(2 * X).astype(np.int64)
    for model, target in ((BilevelSVR(**QUICK), X[:, 2]), (BilevelSVC(**QUICK), Y)):
        model.fit(rows, target)
        bisvm.to_onnx(model)  # registers the converters
        written = convert_sklearn(
            model, initial_types=[("X", Int64TensorType([None, 4]))]
        )
        session = runtime.InferenceSession(written.SerializeToString())
        numbers = session.run(None, {"X": rows})[0 if target.dtype == float else 1]
        assert numbers.dtype == np.float64
