"""Which classes are taken for which."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix
from sklearn.svm import SVC

from bisvm.plots import ConfusionData, ConfusionDisplay, confusion_data

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
y = np.array(["cat", "dog", "$x$"])[rng.integers(3, size=60)]


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


def test_counts_are_scikit_learn_s():
    model = SVC().fit(X, y)
    data = confusion_data(model, X, y)
    assert data.labels == ("$x$", "cat", "dog")
    np.testing.assert_array_equal(data.counts, confusion_matrix(y, model.predict(X)))


def test_cells_have_numbers_and_dollars_are_dollars():
    display = ConfusionDisplay.from_estimator(SVC().fit(X, y), X, y)
    written = [int(text.get_text()) for text in display.ax_.texts]
    assert written == np.ravel(display.data.counts).tolist()
    display.figure_.canvas.draw()
    assert display.ax_.get_yticklabels()[0].get_text() == r"\$x\$"


def test_many_classes_and_given_axes():
    counts = tuple(map(tuple, np.eye(30, dtype=int).tolist()))
    figure, ax = plt.subplots()
    data = ConfusionData(tuple(map(str, range(30))), counts)
    display = ConfusionDisplay(data=data).plot(ax=ax)
    assert display.ax_ is ax and display.figure_ is figure and not ax.texts
