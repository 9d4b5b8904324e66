"""The multinomial criterion: its minimum, slopes, missing classes, extreme values."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

from bisvm import BilevelObjective, BilevelSVC
from bisvm.criteria import (
    Blend,
    CalibratedLogistic,
    CalibratedSquaredError,
    Criterion,
    Multinomial,
    Points,
    Weighted,
    get_criterion,
)
from bisvm.criteria.priors import Shrinkage
from bisvm.data.columns import pooled_pairs, split_columns
from bisvm.data.targets import class_pairs, class_tasks
from bisvm.testing import central_difference, check_criterion, check_hypergradient
from tests.covering import crossed
from tests.problems import make_objective, three_classes

KINDS = ("classes", "classes without intercepts", "two classes", "pairs")


class Sample:
    """Rows with decision values in all tasks, and the points that they make."""

    def __init__(self, kind="classes", n=40, n_classes=4, size=1.0, seed=0):
        rng = np.random.default_rng(seed)
        n_classes = 2 if kind == "two classes" else n_classes
        self.multi_class = "ovo" if kind == "pairs" else "ovr"
        self.y = np.arange(n) * 7 % 11 % n_classes
        self.tasks = class_tasks(self.y, n_classes, self.multi_class)
        self.f = rng.normal(0.6 * self.tasks, 1.0) * size
        weight = rng.uniform(0.2, 1.0, n)
        self.weight = weight / weight.sum()
        self.n_classes = n_classes
        self.intercepts = kind in ("classes", "two classes")
        self.criterion = Multinomial(intercepts=self.intercepts)

    @property
    def points(self):
        n, n_tasks = self.tasks.shape
        row, task = np.divmod(np.arange(n * n_tasks), n_tasks)
        labels = np.where(self.tasks == 0, 1.0, self.tasks)
        pairs = class_pairs(self.n_classes) if self.multi_class == "ovo" else None
        return Points(labels.ravel(), task, task, row, pairs)

    @property
    def weights(self):
        members = self.tasks != 0
        return (self.weight[:, None] * members / members.sum(axis=1)[:, None]).ravel()

    def margins(self, f=None):
        f = self.f if f is None else f
        return self.points.labels * f.ravel()

    def evaluate(self, f=None, criterion=None):
        criterion = self.criterion if criterion is None else criterion
        return criterion.evaluate(self.margins(f), self.weights, self.points)

    def logits(self, x, f):
        if self.multi_class == "ovo":
            return np.exp(x[1]) * pooled_pairs(np.exp(x[0]) * f, self.n_classes)
        f = np.hstack([-f, f]) / 2 if f.shape[1] == 1 else f
        return np.exp(x[0]) * f + (x[1:] if self.intercepts else 0.0)

    def value(self, x, f=None):
        """The formula of the module, written out."""
        own = np.arange(len(self.y)), self.y
        f = self.f if f is None else f
        loss = -self.weight @ log_softmax(self.logits(x, f), axis=1)[own]
        c = self.criterion
        loss += 0.5 * c.ridge * (x[0] - math.log(c.center)) ** 2
        prior = x[1:] - (math.log(2.0 / self.n_classes) if self.pairwise else 0.0)
        return loss + 0.5 * c.strength * np.sum(prior**2)

    @property
    def pairwise(self):
        return self.multi_class == "ovo"

    def least(self):
        """The lowest of SciPy's minima from many starts, and where it is."""
        more = [0.0] if self.pairwise else np.zeros(self.n_classes * self.intercepts)
        starts = [np.append(t, more) for t in np.arange(-4.0, 5.0)]
        starts = [
            start - math.log(np.abs(self.f).mean()) * (start == start[0])
            for start in starts
        ]
        found = [
            minimize(self.value, start, method="BFGS", options={"gtol": 1e-9})
            for start in starts
        ]
        return min(found, key=lambda one: one.fun)


@pytest.mark.parametrize(
    "kind, size, seed", crossed(KINDS, [1e-3, 1.0, 1e4], [0, 1], strength=1)
)
def test_scale_and_intercepts_are_optimal(kind, size, seed):
    sample = Sample(kind, size=size, seed=seed)
    found = sample.evaluate().value
    assert found == pytest.approx(sample.least().fun, rel=1e-9)


@pytest.mark.parametrize("kind, size", crossed(KINDS, [1e-6, 1.0, 1e5], strength=1))
def test_slopes_are_the_derivatives_of_the_value(kind, size):
    sample = Sample(kind, n=6 if kind == "pairs" else 12, size=size)
    slopes = sample.evaluate().slopes

    def value(v):
        return sample.criterion.evaluate(size * v, sample.weights, sample.points).value

    expected = central_difference(value, sample.margins() / size, 1e-3)
    error = np.linalg.norm(size * slopes - expected)
    assert np.linalg.norm(expected) > 1e-2
    assert error < 1e-8 * np.linalg.norm(expected)


def test_values_of_pairs_without_a_rows_class_have_slopes():
    sample = Sample("pairs")
    others = sample.weights == 0
    assert others.sum() == 40 * 3
    assert np.abs(sample.evaluate().slopes[others]).min() > 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_every_point_has_the_influence_of_its_row(kind):
    sample = Sample(kind, n=24)
    value, losses, _ = sample.evaluate()
    by_row = losses.reshape(sample.tasks.shape)
    assert np.ptp(by_row, axis=1).max() == 0.0
    assert sample.weight @ by_row[:, 0] == pytest.approx(value, rel=1e-14)

    def moved(factors):
        weights = sample.weights.reshape(by_row.shape) * factors[:, None]
        weights = weights.ravel() / weights.sum()
        return sample.criterion.evaluate(sample.margins(), weights, sample.points).value

    expected = central_difference(moved, np.ones(len(by_row)), 1e-4)
    found = sample.weight * (by_row[:, 0] - value)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_size_of_decision_values_does_not_count(kind):
    sample = Sample(kind)
    criterion = sample.criterion.replace(ridge=1e-12)
    one = sample.evaluate(criterion=criterion)
    for scale in (1e-6, 1e-3, 1e3, 1e6):
        other = sample.evaluate(scale * sample.f, criterion)
        assert other.value == pytest.approx(one.value, rel=1e-8)
        np.testing.assert_allclose(scale * other.slopes, one.slopes, atol=1e-8)


def test_it_is_the_log_loss_of_scikit_learn():
    sample = Sample("classes without intercepts")
    least = sample.least()
    p = softmax(sample.logits(least.x, sample.f), axis=1)
    expected = log_loss(sample.y, p, sample_weight=sample.weight)
    expected += 0.5e-4 * (least.x[0] - math.log(1.5)) ** 2
    assert sample.evaluate().value == pytest.approx(expected, rel=1e-9)


def test_two_classes_without_intercepts_are_the_calibrated_logistic_loss():
    sample = Sample("two classes")
    plain = sample.evaluate(criterion=Multinomial(intercepts=False))
    expected = sample.evaluate(criterion=CalibratedLogistic())
    assert plain.value == pytest.approx(expected.value, rel=1e-14)
    np.testing.assert_allclose(plain.slopes, expected.slopes, rtol=1e-10)
    assert sample.evaluate().value < plain.value


def test_intercepts_forgive_a_shift_of_all_values_of_a_class():
    sample = Sample(n=400)
    criterion = Multinomial(strength=1e-9, ridge=1e-9)
    value = sample.evaluate(criterion=criterion).value
    moved = sample.f + np.array([1.0, -2.0, 0.5, 0.0])
    assert sample.evaluate(moved, criterion).value == pytest.approx(value, abs=1e-6)
    plain = criterion.replace(intercepts=False)
    assert sample.evaluate(moved, plain).value > value + 0.1


def test_a_strong_prior_leaves_no_intercepts():
    sample = Sample()
    strong = sample.evaluate(criterion=Multinomial(strength=1e9)).value
    plain = sample.evaluate(criterion=Multinomial(intercepts=False)).value
    assert strong == pytest.approx(plain, rel=1e-8)


# --- classes without a machine --------------------------------------------------------


def test_a_class_without_a_machine_is_left_out_of_the_softmax():
    sample = Sample()
    kept = sample.points.task != 2
    result = sample.criterion.evaluate(
        sample.margins()[kept], sample.weights[kept], sample.points.at(kept)
    )
    # Rows of class 2 do not count; the others are compared with the three classes left.
    own = sample.y != 2
    smaller = Sample()
    smaller.y = np.array([0, 1, -1, 2])[sample.y[own]]
    smaller.f, smaller.tasks = sample.f[own][:, [0, 1, 3]], sample.tasks[own][:, :3]
    smaller.n_classes = 3
    smaller.weight = sample.weight[own] / sample.weight[own].sum()
    assert result.value == pytest.approx(smaller.least().fun, rel=1e-9)
    of_class_2 = np.repeat(sample.y == 2, 3)
    assert not result.slopes[of_class_2].any()
    assert np.all(result.losses[of_class_2] == result.value)
    assert np.all(result.slopes[~of_class_2] != 0.0)


def test_a_class_may_lack_a_machine_in_some_splits():
    sample = Sample()
    points = sample.points
    kept = (points.task != 2) | (points.row % 2 == 0)
    points, u, w = points.at(kept), sample.margins()[kept], sample.weights[kept]
    w = w / w.sum()
    slopes = sample.criterion.evaluate(u, w, points).slopes
    expected = central_difference(
        lambda v: sample.criterion.evaluate(v, w, points).value, u
    )
    np.testing.assert_allclose(slopes, expected, atol=1e-10)


def test_a_pair_without_a_machine_says_nothing():
    sample = Sample("pairs")
    whole = sample.evaluate(np.where(np.arange(6) == 3, 0.0, sample.f)).value
    kept = sample.points.task != 3
    points, w = sample.points.at(kept), sample.weights[kept]
    w = w / w.sum()
    # Members of the pair have one value less, but the same weights as rows.
    w = w * (sample.weight / np.bincount(points.row, w))[points.row]
    part = sample.criterion.evaluate(sample.margins()[kept], w, points)
    assert part.value == pytest.approx(whole, rel=1e-9)


def test_pairs_may_be_known_for_the_rows_of_their_classes_alone():
    sample = Sample("pairs")
    kept = sample.weights > 0
    result = sample.criterion.evaluate(
        sample.margins()[kept], sample.weights[kept], sample.points.at(kept)
    )
    silent = sample.evaluate(np.where(sample.tasks == 0, 0.0, sample.f))
    assert result.value == pytest.approx(silent.value, rel=1e-12)


def test_without_any_row_that_counts_it_is_the_loss_of_silence():
    row = np.arange(6)
    # All rows are of the third class, which has no machine.
    points = Points(-np.ones(6), row % 2, row % 2, row // 2)
    value, losses, slopes = Multinomial().evaluate(
        np.ones(6), np.full(6, 1 / 6), points
    )
    assert value == Multinomial().at_zero(2)
    assert np.all(losses == value) and not slopes.any()
    for criterion in ("multinomial", "balanced_multinomial"):
        with pytest.raises(ValueError, match="'multinomial' needs held-out rows whose"):
            get_criterion(criterion).check(points)
    Multinomial().check(Sample().points)


# --- extreme values -------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-30, 1e30, 1e300])
@pytest.mark.filterwarnings("error")
def test_decision_values_of_any_size(kind, scale):
    sample = Sample(kind)
    with np.errstate(divide="raise", invalid="raise"):
        for f in (scale * sample.f, scale * sample.tasks, -scale * sample.tasks):
            value, losses, slopes = sample.evaluate(f)
            assert math.isfinite(value) and np.isfinite(losses).all()
            assert np.isfinite(slopes).all()
            assert value < math.log(sample.n_classes) + 80.0


@pytest.mark.parametrize("kind", KINDS)
def test_one_huge_value_beside_usual_ones(kind):
    sample = Sample(kind)
    for huge in (1e300, -1e300):
        f = sample.f.copy()
        f[3, 0] = huge
        result = sample.evaluate(f)
        assert math.isfinite(result.value) and np.isfinite(result.slopes).all()


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_are_not_numbers_show_in_the_value(kind):
    sample = Sample(kind)
    for bad, expected in ((np.nan, math.nan), (np.inf, math.inf), (-np.inf, math.inf)):
        f = sample.f.copy()
        f[3, 0] = bad
        value, _, slopes = sample.evaluate(f)
        np.testing.assert_equal(value, expected)
        assert not slopes.any()


@pytest.mark.parametrize("kind", KINDS)
def test_silent_machines(kind):
    sample = Sample(kind)
    value, _, slopes = sample.evaluate(0.0 * sample.f)
    classes = np.bincount(sample.y, sample.weight)
    least = -np.sum(classes * np.log(classes)) if sample.intercepts else 0.0
    assert least <= value <= math.log(sample.n_classes) + 1e-14
    assert np.linalg.norm(slopes) > 1e-3
    assert sample.criterion.at_zero(sample.n_classes) == math.log(sample.n_classes)


def test_the_value_is_continuous_where_the_minimum_changes():
    """Shrinking values that separate: the lowest minimum jumps, its value does not."""
    sample = Sample("classes")
    sizes = np.exp(np.linspace(math.log(1e-60), 0.0, 201))
    values = [sample.evaluate(size * sample.tasks).value for size in sizes]
    assert np.abs(np.diff(values)).max() < 1e-2
    assert np.all(np.diff(values) <= 1e-12)


# --- as a part ------------------------------------------------------------------------


def test_it_keeps_the_contract_of_criteria():
    for criterion in ("multinomial", Multinomial(intercepts=False, ridge=1e-2)):
        check_criterion(get_criterion(criterion))


@pytest.mark.parametrize(
    "given, message",
    [
        ({"ridge": 0.0}, "ridge must be a positive"),
        ({"center": -1.0}, "center must be a positive"),
        ({"strength": np.inf}, "strength must be a positive"),
        ({"intercepts": "yes"}, "intercepts must be True or False; got 'yes'"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        get_criterion(Multinomial(**given))


def test_what_it_needs_is_passed_on():
    for criterion in (Blend("multinomial"), Weighted("multinomial")):
        assert criterion.sees_all_tasks
    assert not Blend().sees_all_tasks
    blend = Blend("multinomial", "calibrated_mse", weight=0.5)
    assert blend.at_zero(3) == pytest.approx(math.log(3.0) + 0.5)
    sample = Sample("pairs")
    both = sample.evaluate(criterion=blend).value
    second = sample.evaluate(criterion=CalibratedSquaredError()).value
    assert both == pytest.approx(sample.evaluate().value + 0.5 * second)


# --- in a bilevel problem -------------------------------------------------------------


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "ard"])
def test_hypergradients(kernel, multi_class):
    X, y = three_classes(48)
    weight = np.random.default_rng(2).uniform(0.3, 2.0, size=48)
    objective = make_objective(
        X,
        y,
        kernel=kernel,
        loss="logistic",
        criterion="multinomial",
        multi_class=multi_class,
        weight=weight,
    )
    check_hypergradient(objective, objective.theta0 + 0.2, rtol=1e-6, floor=1e-4)


def test_hypergradients_of_pairs_of_four_classes():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 4
    X = rng.normal(size=(60, 2)) + np.array([[0, 0], [2, 0], [0, 2], [2, 2]])[y]
    objective = make_objective(
        X, y, loss="logistic", criterion="multinomial", multi_class="ovo", cv=3
    )
    check_hypergradient(objective, rtol=1e-6, floor=1e-4)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_hypergradients_where_a_training_part_lacks_a_class(multi_class):
    X, y = three_classes(48)
    third = np.flatnonzero(y == 2)
    others = np.flatnonzero(y != 2)
    pairs = [
        (others[:16], np.concatenate([others[16:], third])),
        (np.concatenate([others[16:], third[:8]]), others[:16]),
    ]
    with pytest.warns(UserWarning, match="left out"):
        objective = make_objective(
            X,
            y,
            loss="logistic",
            criterion="multinomial",
            multi_class=multi_class,
            cv=pairs,
        )
    check_hypergradient(objective, rtol=1e-6, floor=1e-4)


def test_the_prior_is_in_units_of_the_loss_of_silence():
    X, y = three_classes(48)
    one, other = (
        make_objective(X, y, kernel="ard", criterion=criterion, prior=Shrinkage(0.1))
        for criterion in ("multinomial", "logistic")
    )
    theta = one.theta0 + np.linspace(0.0, 1.0, len(one.theta0))
    values = [objective.objective.prior(theta)[0] for objective in (one, other)]
    assert values[0] / values[1] == pytest.approx(math.log(3.0) / math.log(2.0))


def test_points_of_all_tasks():
    y = np.array([0, 1, 2, 0, 1, 2])
    splits = [(np.arange(3), np.arange(3, 6)), (np.arange(3, 6), np.arange(3))]
    columns = split_columns(class_tasks(y, 3, "ovo"), splits, np.ones(6))
    few, every = columns.points, columns.points_at(columns.outside)
    assert len(few.labels) == 12 and len(every.labels) == 18
    np.testing.assert_array_equal(every.pairs, [[0, 1], [0, 2], [1, 2]])
    assert few.n_classes == every.n_classes == 3
    one = columns.of_split(1)
    np.testing.assert_array_equal(one.pairs, columns.pairs)
    for kind, n_classes in (("ovr", 3), ("ovr", 2)):
        tasks = class_tasks(y % n_classes, n_classes, kind)
        points = split_columns(tasks, splits, np.ones(6)).points
        assert points.pairs is None and points.n_classes == n_classes


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("criterion", ["multinomial", "balanced_multinomial"])
def test_fitting_with_it(criterion, multi_class):
    X, y = load_iris(return_X_y=True)
    model = BilevelSVC(
        "rbf", criterion=criterion, multi_class=multi_class, cv=3, random_state=0
    )
    model.fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.93
    assert model.certificate_.converged
    objective = BilevelObjective(model, X[::2], y[::2])
    assert objective(objective.theta0)[0] > model.criterion_value_


class AllTasks(Criterion):
    """A criterion of a user that is given the pairs without a row's class too."""

    sees_all_tasks = True

    def _evaluate(self, u, w, points):
        self.seen.append((u, w, points))
        return CalibratedLogistic().evaluate(u, w, points)


def test_a_criterion_may_ask_for_all_tasks():
    X, y = three_classes(48)
    criterion = AllTasks()
    criterion.seen = []
    objective = make_objective(X, y, criterion=criterion, multi_class="ovo")
    value, gradient = objective(objective.theta0)
    plain = make_objective(X, y, criterion="calibrated_logistic", multi_class="ovo")
    expected, expected_gradient = plain(objective.theta0)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-8)
    u, w, points = criterion.seen[0]
    assert len(u) == 48 * 3 and (w > 0).sum() == 48 * 2
    assert np.all(points.labels[w == 0] == 1.0)
