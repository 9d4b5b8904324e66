"""Kernels: the contract, the explicit formulas, and what their arguments must be."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from bisvm.kernels import KERNELS, RBF, Factors, Linear, get_kernel
from bisvm.kernels import base as kernels_base
from bisvm.kernels.radial import exp_in_place
from bisvm.testing import check_hypergradient, check_kernel
from tests.problems import make_objective, toy_data

RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 3))
Y = RNG.normal(size=(7, 3))
# Not negative, and no two points share a coordinate.
HISTOGRAMS = X - X.min(axis=0) + 0.5
GAMMA = np.array([0.2, 1.5, 0.01])


@pytest.mark.parametrize(
    "kernel",
    [
        *map(get_kernel, KERNELS),
        RBF(0.3),
        RBF(GAMMA, per_feature=True),
        RBF(0.3, per_feature=True, gamma_bounds=(1e-3, 10.0)),
    ],
    ids=repr,
)
def test_every_kernel_keeps_the_contract(kernel):
    check_kernel(kernel, HISTOGRAMS)


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_has_the_hypergradient_of_its_machine(name):
    points, y = toy_data(36)
    objective = make_objective(np.exp(0.5 * points), y, kernel=name, loss="logistic")
    check_hypergradient(objective, objective.theta0 + 0.1, floor=1e-4)


def test_gradients_stay_exact_far_from_the_origin():
    check_kernel(RBF(0.3), X + 1e3, sparse=False)


def test_the_linear_kernel_is_the_inner_product():
    np.testing.assert_allclose(Linear()(X, Y), X @ Y.T)


def test_one_width_is_the_kernel_of_scikit_learn():
    np.testing.assert_allclose(RBF(0.3)(X, Y), rbf_kernel(X, Y, gamma=0.3), rtol=1e-12)


def test_one_width_per_feature_is_one_width_on_scaled_features():
    plain = RBF(1.0)(X * np.sqrt(GAMMA), Y * np.sqrt(GAMMA))
    np.testing.assert_allclose(RBF(GAMMA, per_feature=True)(X, Y), plain, rtol=1e-12)
    twin = [[np.exp(-GAMMA @ (a - b) ** 2) for b in Y] for a in X]
    np.testing.assert_allclose(RBF(GAMMA, per_feature=True)(X, Y), twin, rtol=1e-12)


def test_the_default_width_is_one_over_features_times_variance():
    skewed = X * [1.0, 10.0, 100.0]
    (one,) = RBF().parameters(skewed)
    assert one.value == pytest.approx(1.0 / (3 * skewed.var(axis=0).mean()))
    (each,) = RBF(per_feature=True).parameters(skewed)
    # By this method a row of weight two counts as two rows.
    method = "averaged_inverted_cdf"
    low, high = np.quantile(skewed, [0.25, 0.75], axis=0, method=method)
    size = np.minimum(skewed.std(axis=0), (high - low) / 1.349) ** 2
    np.testing.assert_allclose(each.value, 1.0 / (3 * size))
    np.testing.assert_allclose(each.unit, 1.0 / size)


def test_one_entry_far_away_does_not_decide_a_width():
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(200, 2))
    far = plain.copy()
    far[7, 0] = 1e6
    (before,), (after,) = (RBF(per_feature=True).parameters(Z) for Z in (plain, far))
    np.testing.assert_allclose(after.value, before.value, rtol=0.2)


def test_constant_columns_are_not_counted():
    constant = np.hstack([X, np.full((len(X), 2), 3.0)])
    (plain,), (more,) = (RBF(per_feature=True).parameters(Z) for Z in (X, constant))
    np.testing.assert_allclose(more.value[:3], plain.value)


def test_sample_weights_count_in_the_default_width():
    weight = np.array([1.0] * 5 + [0.0] * 5)
    (weighted,) = RBF().parameters(X, weight)
    (alone,) = RBF().parameters(X[:5])
    assert weighted.value == pytest.approx(alone.value)


def test_distances_do_not_cancel_far_from_the_origin():
    near, far = RBF(1.0)(X), RBF(1.0)(X + 1e6)
    np.testing.assert_allclose(far, near, atol=1e-9)


def test_a_point_has_kernel_one_with_itself():
    np.testing.assert_array_equal(np.diagonal(RBF(3.0)(X * 1e8)), 1.0)


def test_dense_and_sparse_may_be_mixed():
    S = sparse.csr_array(np.where(np.abs(Y) > 0.5, Y, 0.0))
    for kernel in (RBF(0.3), RBF(GAMMA, per_feature=True), Linear()):
        expected = kernel(X, S.toarray())
        np.testing.assert_allclose(kernel(X, S), expected, atol=1e-12)
        np.testing.assert_allclose(kernel(S, X), expected.T, atol=1e-12)


def test_blocks_of_weights_add_up_to_all_of_them(monkeypatch):
    factors = Factors(RNG.normal(size=(10, 2)), RNG.normal(size=(7, 2)))
    kernel = RBF(GAMMA, per_feature=True)
    gram = kernel(X, Y)
    whole = kernel.pullback(X, Y, gram, factors, inputs=True)
    monkeypatch.setattr(kernels_base, "BLOCK_ENTRIES", 20)
    assert len(factors.map_blocks(lambda rows, W: rows)) == 5
    parts = kernel.pullback(X, Y, gram, factors, inputs=True)
    for name in ("theta", "X", "Y"):
        np.testing.assert_allclose(
            getattr(parts, name), getattr(whole, name), atol=1e-12
        )


def test_kernels_are_equal_when_their_arguments_are():
    assert RBF(GAMMA, per_feature=True) == RBF(GAMMA.copy(), per_feature=True)
    assert RBF(GAMMA, per_feature=True) != RBF(2 * GAMMA, per_feature=True)
    assert RBF(0.5) != RBF("scale")
    assert RBF(0.5) != Linear()


def test_kernels_with_one_bound_per_feature_can_be_compared():
    low, high = np.full(3, 0.1), np.full(3, 10.0)
    one = RBF(per_feature=True, gamma_bounds=(low, high))
    assert one == RBF(per_feature=True, gamma_bounds=(low.copy(), high.copy()))
    assert one != RBF(per_feature=True, gamma_bounds=(low, 2 * high))


def test_with_values_gives_a_new_kernel():
    kernel = RBF(per_feature=True)
    other = kernel.with_values({"gamma": GAMMA})
    assert kernel.gamma == "scale"
    assert other == RBF(GAMMA, per_feature=True)
    assert Linear().with_values({}) == Linear()


@pytest.mark.parametrize(
    "kernel, message",
    [
        (RBF(GAMMA), "per_feature=True"),
        (RBF(GAMMA[:2], per_feature=True), "2 values, but X has 3 features"),
        (RBF(-1.0), "positive and finite"),
        (RBF(np.inf), "positive and finite"),
        (RBF("auto"), "Expected 'scale' or a number"),
    ],
)
def test_a_width_that_makes_no_sense_is_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel.parameters(X)


def test_unknown_names_list_the_valid_ones():
    with pytest.raises(ValueError, match="'linear', 'rbf', 'ard'.*Did you mean 'rbf'"):
        get_kernel("rbff")
    with pytest.raises(TypeError, match="Kernel object"):
        get_kernel(3)


def test_distances_are_those_of_the_rows_beside_an_outlier():
    """The centre of the data does not follow one entry of 1e12."""
    far = np.vstack([X, np.full((1, X.shape[1]), 1e12)])
    gram = RBF(gamma=0.3).gram(far)
    np.testing.assert_allclose(gram[:-1, :-1], RBF(gamma=0.3).gram(X), rtol=1e-12)
    assert not gram[-1, :-1].any()


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_narrow_kernels_have_no_subnormal_entries(precision):
    """Products with them take a hundred times as long."""
    X = np.linspace(0.0, 40.0, 300, dtype=precision)[:, None]
    gram = RBF(gamma=1.0)(X)
    expected = np.exp(-((X - X.T).astype(float) ** 2))
    np.testing.assert_allclose(gram, expected, rtol=1e-3, atol=1e-30)
    assert gram.dtype == precision and (gram == 0.0).any()
    assert gram[gram > 0.0].min() >= np.finfo(precision).tiny


def test_the_exponential_keeps_what_is_no_number():
    kept = exp_in_place(np.array([np.nan, -np.inf, -1e4, 0.0, np.inf]))
    np.testing.assert_array_equal(kept, [np.nan, 0.0, 0.0, 1.0, np.inf])
