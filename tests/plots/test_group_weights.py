"""C of groups as data, and as bars."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from bisvm import BilevelSVC
from bisvm.plots import GroupWeightsData, GroupWeightsDisplay, group_weights_data
from tests.problems import toy_data

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

X, y = toy_data(60)
NAMES = np.array(["clean", "noisy", "worse"])


@pytest.fixture(scope="module")
def model():
    svm = BilevelSVC("rbf", regularization="per_group", starts=1, random_state=0)
    return svm.fit(X, y, sample_groups=NAMES[np.arange(60) % 3])


def with_weights(model, C):
    """A fitted estimator that has these C."""
    copy = BilevelSVC()
    copy.__dict__.update(model.__dict__, C_=np.array(C))
    return copy


def test_data_are_names_and_values_around_a_mean(model):
    assert group_weights_data(with_weights(model, [4.0, 2.0, 1.0])) == GroupWeightsData(
        ("clean", "noisy", "worse"), pytest.approx((4.0, 2.0, 1.0)), pytest.approx(2.0)
    )


def test_weights_of_classes_learned_apart_are_averaged(model):
    data = group_weights_data(with_weights(model, [[4.0, 1.0, 1.0], [1.0, 1.0, 4.0]]))
    assert data.values == pytest.approx((2.0, 1.0, 2.0))


def test_wrong_input_is_explained():
    with pytest.raises(NotFittedError):
        group_weights_data(BilevelSVC())
    with pytest.raises(ValueError, match="regularization='per_group'"):
        group_weights_data(BilevelSVC("rbf", learn=()).fit(X, y))


def test_bars_start_at_the_mean_and_end_at_c(model):
    display = GroupWeightsDisplay.from_estimator(with_weights(model, [4.0, 2.0, 1.0]))
    ends = [bar.get_x() + bar.get_width() for bar in display.bars_]
    assert ends == pytest.approx([4.0, 2.0, 1.0])
    assert [bar.get_x() for bar in display.bars_] == pytest.approx([2.0] * 3)
    texts = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert texts == NAMES.tolist()
    low, high = display.ax_.get_xlim()
    assert low < 1.0 and high > 4.0
    display.figure_.canvas.draw()


def test_groups_without_a_difference_and_given_axes(model):
    _, ax = plt.subplots()
    alike = with_weights(model, [1.0] * 3)
    display = GroupWeightsDisplay.from_estimator(alike, ax=ax, color="0.5")
    assert display.ax_ is ax
    display.figure_.canvas.draw()


def test_learned_class_weights_are_drawn_too():
    model = BilevelSVC("rbf", class_weight="learn", starts=1, random_state=0).fit(X, y)
    display = GroupWeightsDisplay.from_estimator(model)
    assert display.data.names == ("0", "1")
