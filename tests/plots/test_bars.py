"""Relevances as data, and as bars."""

import sys

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from bisvm import BilevelSVC
from bisvm.datasets import make_moons_with_noise
from bisvm.plots import RelevanceData, RelevanceDisplay, relevance_data

pd = pytest.importorskip("pandas")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(scope="module")
def model():
    X, y = make_moons_with_noise(60, n_noise=3, random_state=0)
    return BilevelSVC(kernel="ard", starts=1, random_state=0).fit(X, y)


def with_relevance(model, relevance):
    """A fitted estimator that has these relevances."""
    copy = BilevelSVC()
    copy.__dict__.update(model.__dict__, relevance_=np.array(relevance))
    return copy


def test_data_are_sorted_and_named(model):
    model = with_relevance(model, [0.1, 0.7, 0.0, 0.2, 0.0])
    data = relevance_data(model, list("abcde"))
    assert data == RelevanceData(
        ("b", "d", "a", "c", "e"), (0.7, 0.2, 0.1, 0.0, 0.0), (1, 3, 0, 2, 4)
    )
    assert data.first(2) == RelevanceData(("b", "d"), (0.7, 0.2), (1, 3))


def test_names_come_from_the_estimator(model):
    model = with_relevance(model, [0.1, 0.9])
    assert relevance_data(model).names == ("x1", "x0")
    model.feature_names_in_ = np.array(["left", "right"], dtype=object)
    assert relevance_data(model).names == ("right", "left")


def test_names_come_from_the_steps_before_it(model):
    X, y = make_moons_with_noise(60, n_noise=3, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcde"))
    steps = ColumnTransformer([("some", StandardScaler(), ["e", "a", "b"])])
    svm = BilevelSVC(kernel="ard", starts=1, random_state=0)
    pipe = make_pipeline(steps, svm).fit(frame, y)
    data = relevance_data(pipe)
    assert sorted(data.names) == ["some__a", "some__b", "some__e"]
    assert data.names[0] == ("some__e", "some__a", "some__b")[data.columns[0]]
    assert len(RelevanceDisplay.from_estimator(pipe).bars_) == 3
    # Names are not known behind a step that has none.
    plain = make_pipeline(FunctionTransformer(), svm).fit(X, y)
    assert sorted(relevance_data(plain).names) == ["x0", "x1", "x2", "x3", "x4"]


def test_relevances_of_several_classes_are_averaged(model):
    model = with_relevance(model, [[0.1, 0.9], [0.5, 0.1]])
    assert relevance_data(model).values == pytest.approx((0.5, 0.3))


def test_wrong_input_is_explained(model):
    with pytest.raises(ValueError, match="2 feature_names given.* on 5 features"):
        relevance_data(model, ["a", "b"])
    with pytest.raises(NotFittedError):
        relevance_data(BilevelSVC())
    model = with_relevance(model, [0.0])
    del model.relevance_
    with pytest.raises(ValueError, match="has no relevances; .*kernel='ard'"):
        relevance_data(model)


def test_bars_are_the_data(model):
    display = RelevanceDisplay.from_estimator(model, feature_names=list("abcde"))
    assert [bar.get_width() for bar in display.bars_] == list(display.data.values)
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert tuple(labels) == display.data.names
    top, bottom = display.ax_.get_ylim()[::-1]
    assert top < bottom, "the most relevant feature is to stand on top"


def test_axes_and_style_are_the_caller_s(model):
    figure, ax = plt.subplots()
    display = RelevanceDisplay.from_estimator(
        model, ax=ax, max_features=2, color="0.5", height=0.3
    )
    assert display.ax_ is ax and display.figure_ is figure
    assert len(display.bars_) == 2
    assert display.bars_[0].get_height() == 0.3
    assert len(display.data.names) == 5, "what is not drawn is not forgotten"


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    """That `bisvm.plots` is imported without it: see tests/test_import.py."""
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    display = RelevanceDisplay(data=RelevanceData(("a",), (1.0,), (0,)))
    with pytest.raises(ImportError, match="pip install matplotlib"):
        display.plot()
