"""A kernel given as a matrix: the contract, and what the matrix and X must be."""

import numpy as np
import pytest
from scipy import sparse

from bisvm import BilevelSVC
from bisvm.datasets import make_rings
from bisvm.kernels import RBF, Factors, Precomputed
from bisvm.testing import check_kernel

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(20, 3))
K = RBF(0.3)(POINTS)
ROWS = RNG.permutation(20)[:9][:, None].astype(float)


def test_it_keeps_the_contract():
    check_kernel(Precomputed(K), ROWS, inputs=False)


def test_it_looks_entries_up():
    rows, columns = np.array([3, 0, 3]), np.array([7, 2])
    kernel = Precomputed(K)
    np.testing.assert_array_equal(
        kernel(rows[:, None], columns[:, None]), K[rows][:, columns]
    )
    np.testing.assert_array_equal(kernel(rows[:, None]), K[rows][:, rows])
    np.testing.assert_array_equal(kernel.diagonal(rows[:, None]), K[rows, rows])
    np.testing.assert_array_equal(
        kernel(sparse.csr_array(rows[:, None])), K[rows][:, rows]
    )


def test_a_gram_matrix_is_a_copy():
    kernel = Precomputed(K)
    everything = kernel(np.arange(20)[:, None])
    everything *= 2.0
    np.testing.assert_array_equal(kernel.matrix, RBF(0.3)(POINTS))


def test_it_does_not_move_with_its_inputs():
    kernel = Precomputed(K)
    weights = Factors(RNG.normal(size=(9, 2)), RNG.normal(size=(4, 2)))
    found = kernel.pullback(
        ROWS, ROWS[:4], kernel(ROWS, ROWS[:4]), weights, inputs=True
    )
    assert found.theta.size == 0
    np.testing.assert_array_equal(found.X, np.zeros((9, 1)))
    np.testing.assert_array_equal(found.Y, np.zeros((4, 1)))


@pytest.mark.parametrize(
    "kernel",
    [
        Precomputed(K).on([0]) + RBF().on([1, 2]),
        Precomputed(K).on([0]) * RBF(0.4).on([2]),
    ],
    ids=["sum", "product"],
)
def test_it_can_be_a_part_of_another_kernel(kernel):
    X = np.column_stack([ROWS, RNG.normal(size=(9, 2))])
    check_kernel(kernel, X, inputs=False)


def test_a_machine_on_a_matrix_is_the_machine_on_the_points():
    X, y = make_rings(90, random_state=0)
    train, test = np.arange(60)[:, None], np.arange(60, 90)[:, None]
    settings = {"learn": "C", "starts": 1, "random_state": 0}
    points = BilevelSVC(RBF(0.5), **settings).fit(X[:60], y[:60])
    matrix = BilevelSVC(Precomputed(RBF(0.5)(X)), **settings).fit(train, y[:60])
    assert matrix.C_ == pytest.approx(points.C_, rel=1e-6)
    np.testing.assert_allclose(
        matrix.decision_function(test), points.decision_function(X[60:]), rtol=1e-5
    )


LOPSIDED = K.copy()
LOPSIDED[2, 5] += 0.125
INFINITE = K.copy()
INFINITE[4, 1] = np.nan


@pytest.mark.parametrize(
    "matrix, message",
    [
        (K[:5], r"must be square, got shape \(5, 20\)"),
        (K[0], r"must be square, got shape \(20,\)"),
        (LOPSIDED, r"symmetric.* by up to 0.125.*\(K \+ K.T\) / 2"),
        (INFINITE, r"matrix\[4, 1\] is nan, expected finite"),
    ],
)
def test_a_matrix_that_makes_no_sense_is_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        Precomputed(matrix).validate()
    with pytest.raises(ValueError, match=message):
        Precomputed(matrix).parameters(ROWS)


@pytest.mark.parametrize(
    "X, message",
    [
        (POINTS, r"X of shape \(n, 1\); got shape \(20, 3\)"),
        (np.arange(3), r"got shape \(3,\)"),
        ([[0], [1.5]], r"X\[1, 0\] = 1.5 is not a row number"),
        ([[0], [20]], r"X\[1, 0\] = 20 .* from 0 to 19"),
        ([[-1], [0]], r"X\[0, 0\] = -1 is not a row number"),
        ([[0], [np.nan]], r"X\[1, 0\] = nan is not a row number"),
    ],
)
def test_inputs_that_are_no_row_numbers_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        Precomputed(K)(np.asarray(X))
