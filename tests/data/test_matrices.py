"""The natural size of the data."""

import numpy as np
import pytest
from scipy import sparse

from bisvm.data.matrices import (
    column_scale,
    column_variance,
    dense_if_small,
    mean_deviation,
    mean_variance,
)

X = np.random.default_rng(0).normal(2.0, 3.0, size=(50, 4))


@pytest.fixture(params=[np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def stored(request):
    return request.param


def test_it_is_the_variance_of_every_column(stored):
    np.testing.assert_allclose(column_variance(stored(X)), X.var(axis=0), rtol=1e-12)


def test_weights_count_as_repetitions(stored):
    weight = np.arange(50) % 3
    repeated = np.repeat(X, weight, axis=0)
    np.testing.assert_allclose(
        column_variance(stored(X), weight), repeated.var(axis=0), rtol=1e-11
    )


def test_a_constant_column_has_the_variance_one(stored):
    constant = X.copy()
    constant[:, 1] = 0.0
    constant[:, 2] = 7.3
    variance = column_variance(stored(constant))
    np.testing.assert_array_equal(variance[1:3], 1.0)
    np.testing.assert_allclose(variance[[0, 3]], X.var(axis=0)[[0, 3]])


def test_a_column_that_varies_at_rounding_level_is_constant(stored):
    wobbly = np.full((50, 1), 0.1) * 3.0
    wobbly[::2] = 0.3
    assert column_variance(stored(wobbly)) == 1.0


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e150])
def test_absurd_scales_have_their_own_variance(stored, scale):
    found = column_variance(stored(X * scale))
    np.testing.assert_allclose(found / scale / scale, X.var(axis=0), rtol=1e-10)


def test_a_sparse_column_of_negative_numbers_is_no_different(stored):
    np.testing.assert_allclose(column_variance(stored(-X)), X.var(axis=0), rtol=1e-12)


def test_a_single_row_has_the_variance_one(stored):
    np.testing.assert_array_equal(column_variance(stored(X[:1])), 1.0)


def test_constant_columns_do_not_count_in_the_mean():
    X = np.random.default_rng(0).normal(size=(30, 4)) * [1.0, 2.0, 0.0, 0.0] + 5.0
    assert mean_variance(X) == pytest.approx(X.var(axis=0).mean())
    assert mean_deviation(X) == pytest.approx(X.std(axis=0).mean())
    assert mean_variance(np.ones((5, 2))) == mean_deviation(np.ones((5, 2))) == 1.0


def test_quartiles_count_weights_as_rows_and_see_zeros_of_sparse_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < [1.0, 0.6, 0.2, 0.0])
    X[:3] *= 1e4
    weight = rng.integers(1, 4, 60)
    repeated = column_scale(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(column_scale(X, weight), repeated)
    np.testing.assert_allclose(column_scale(sparse.csr_array(X), weight), repeated)
    np.testing.assert_allclose(column_scale(-X), column_scale(X))


def test_few_sparse_entries_become_an_array_and_many_stay_sparse():
    np.testing.assert_array_equal(dense_if_small(sparse.csr_array(X)), X)
    wide = sparse.csr_array((400, 8000))
    assert dense_if_small(wide) is wide
    assert dense_if_small(X) is X
