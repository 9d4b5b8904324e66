"""Criteria of residuals: contracts, fitted scales, constants, names."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import mean_absolute_error, mean_pinball_loss

from bisvm.criteria import (
    RESIDUAL_CRITERIA,
    AbsoluteResidual,
    GaussianLikelihood,
    HuberResidual,
    MeanLogistic,
    PinballResidual,
    Points,
    SquaredResidual,
    StudentLikelihood,
    get_criterion,
    get_residual_criterion,
)
from bisvm.criteria.residual import weighted_quantile
from bisvm.testing import check_criterion

EVERY = [
    SquaredResidual(),
    AbsoluteResidual(0.3),
    HuberResidual(),
    PinballResidual(0.8, 0.5),
    GaussianLikelihood(),
    StudentLikelihood(),
    StudentLikelihood(1.5),
]


def one_output(n):
    return Points(np.zeros(n), *np.zeros((2, n), dtype=int), np.arange(n))


def residuals(n=80, seed=0):
    rng = np.random.default_rng(seed)
    w = rng.uniform(0.5, 2.0, n)
    return 0.3 * rng.standard_t(3, n), w / w.sum()


@pytest.mark.parametrize("criterion", EVERY, ids=repr)
def test_contract(criterion):
    check_criterion(criterion)


def test_means_are_those_of_scikit_learn():
    r, w = residuals()
    zero = np.zeros_like(r)
    mse = SquaredResidual().evaluate(r, w).value
    assert mse == pytest.approx(w @ r**2, rel=1e-14)
    mae = AbsoluteResidual(1e-9).evaluate(r, w).value
    expected = mean_absolute_error(r, zero, sample_weight=w)
    assert mae == pytest.approx(expected, rel=1e-8)
    pinball = PinballResidual(0.9, 1e-9).evaluate(r, w).value
    expected = mean_pinball_loss(r, zero, sample_weight=w, alpha=0.9)
    assert pinball == pytest.approx(expected, rel=1e-8)


def test_gaussian_likelihood_of_one_output_is_the_mean_squared_error():
    r, w = residuals()
    found = GaussianLikelihood().evaluate(r, w, one_output(len(r)))
    expected = SquaredResidual().evaluate(r, w)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


def test_outputs_count_alike_whatever_their_scale():
    r, w = residuals()
    task = np.arange(len(r)) % 2
    points = Points(np.zeros(len(r)), task, task, np.arange(len(r)) // 2)
    small = np.where(task == 1, 1e-3, 1.0)
    for criterion in (GaussianLikelihood(), StudentLikelihood()):
        first = criterion.evaluate(r, w, points)
        second = criterion.evaluate(small * r, w, points)
        mass = w[task == 1].sum()
        assert second.value == pytest.approx(first.value * 1e-6**mass, rel=1e-10)


@pytest.mark.parametrize("df", [1.0, 4.0, 30.0])
def test_student_scale_is_the_maximum_of_the_likelihood(df):
    r, w = residuals()
    found = StudentLikelihood(df).evaluate(r, w, one_output(len(r))).value
    scales = np.exp(np.linspace(-3.0, 1.0, 4001))
    likelihood = [w @ stats.t.logpdf(r, df, scale=s) for s in scales]
    constant = stats.t.logpdf(0.0, df)
    assert np.log(found) == pytest.approx(2 * (constant - np.max(likelihood)), abs=1e-5)


@pytest.mark.parametrize("criterion", EVERY, ids=repr)
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_residuals_of_any_size_are_finite(criterion, scale):
    r, w = residuals()
    found = criterion.evaluate(scale * r, w, one_output(len(r)))
    assert np.isfinite(found.value) and np.isfinite(found.slopes).all()


@pytest.mark.parametrize("criterion", [GaussianLikelihood(), StudentLikelihood()])
def test_perfect_predictions(criterion):
    found = criterion.evaluate(np.zeros(5), np.full(5, 0.2), one_output(5))
    assert found.value < 1e-100
    assert np.isfinite(found.slopes).all()


def test_constants_are_the_best_ones():
    rng = np.random.default_rng(2)
    y, w = rng.exponential(size=(301, 2)), rng.uniform(0.5, 2.0, (301, 2))
    grid = np.linspace(0.0, 4.0, 801)
    for criterion in (SquaredResidual(), AbsoluteResidual(), PinballResidual(0.9)):
        (constants,) = criterion.constants(y, w)
        for k in range(2):
            own = w[:, k] / w[:, k].sum()
            losses = [criterion.evaluate(y[:, k] - b, own).value for b in grid]
            assert constants[k] == pytest.approx(grid[np.argmin(losses)], abs=2e-2)


def test_weights_of_quantiles_are_copies_of_rows():
    y, w = np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0])
    for q in (0.1, 0.5, 0.6, 0.75, 0.9):
        copied = np.quantile([3.0, 1.0, 1.0, 2.0], q, method="inverted_cdf")
        assert weighted_quantile(y, w, q) == copied


def test_names_of_the_other_kind_say_what_to_use():
    for name in RESIDUAL_CRITERIA:
        get_residual_criterion(name)
    with pytest.raises(ValueError, match="BilevelSVC"):
        get_residual_criterion("calibrated_logistic")
    with pytest.raises(ValueError, match="BilevelSVC"):
        get_residual_criterion(MeanLogistic())
    with pytest.raises(ValueError, match="BilevelSVR"):
        get_criterion(SquaredResidual())
    with pytest.raises(ValueError, match="Did you mean 'student'"):
        get_residual_criterion("studnt")
    for bad in (PinballResidual(2.0), StudentLikelihood(0.0), AbsoluteResidual(-1.0)):
        with pytest.raises(ValueError):
            get_residual_criterion(bad)


def test_auto_is_mse_for_marks():
    auto, rng = get_residual_criterion("auto"), np.random.default_rng(0)
    y, even = rng.normal(size=(100, 1)), np.ones(100)
    assert auto.for_targets(y, even) == AbsoluteResidual()
    marks = np.clip(np.round(2.0 * y), -3.0, 3.0)
    assert auto.for_targets(marks, even) == SquaredResidual()
    assert auto.for_targets(np.hstack([y, marks]), even) == SquaredResidual()
    # Neither few rows nor a constant are marks.
    assert auto.for_targets(y[:6], even[:6]) == AbsoluteResidual()
    assert auto.for_targets(np.ones((100, 1)), even) == AbsoluteResidual()
    # What is given stays.
    assert get_residual_criterion("mae").for_targets(marks, even) == AbsoluteResidual()
