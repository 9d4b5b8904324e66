"""The factor of the margin system against plain linear algebra."""

import numpy as np
import pytest

from bisvm.incremental.margin import MarginSystem


def gram_of(rng, n=30, d=40):
    Z = rng.normal(size=(n, d))
    return Z @ Z.T / d


def bordered_solution(gram, members, r, s):
    m = len(members)
    A = np.ones((m + 1, m + 1))
    A[:m, :m] = gram[np.ix_(members, members)]
    A[m, m] = 0.0
    x = np.linalg.solve(A, np.append(r, s))
    return x[:m], x[m]


def test_solves_the_bordered_system_while_members_come_and_go():
    rng = np.random.default_rng(0)
    gram = gram_of(rng)
    margin, members = MarginSystem(gram, 1.0), []
    for _ in range(120):
        i = int(rng.integers(30))
        if i in members:
            margin.remove(i)
            members.remove(i)
        else:
            assert margin.append(i)
            members.append(i)
        assert list(margin.members) == members
        if members:
            r, s = rng.normal(size=len(members)), rng.normal()
            beta, b = margin.solve(r, s)
            expected = bordered_solution(gram, members, r, s)
            np.testing.assert_allclose(beta, expected[0], atol=1e-11)
            assert b == pytest.approx(expected[1], abs=1e-11)
            np.testing.assert_allclose(
                margin.functions(beta), beta @ gram[members], atol=1e-12
            )


def test_filled_at_once_or_one_by_one():
    gram = gram_of(np.random.default_rng(1))
    filled, grown = MarginSystem(gram, 1.0), MarginSystem(gram, 1.0)
    assert filled.fill(np.arange(5, 20))
    assert all([grown.append(i) for i in range(5, 20)])
    np.testing.assert_allclose(filled.factor, grown.factor, atol=1e-12)


def test_dependent_points_stay_out():
    """An affine combination is dependent: sum v = -1 moves neither f nor b."""
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(6, 8))
    Z[5] = 0.3 * Z[0] + 0.7 * Z[1]
    Z[4] = 2.0 * Z[2]
    margin = MarginSystem(Z @ Z.T, 1.0)
    assert all([margin.append(i) for i in range(5)])  # Z[4] is not affine in Z[2]
    assert not margin.append(5)
    assert list(margin.members) == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(
        margin.combination(5), [-0.3, -0.7, 0.0, 0.0, 0.0], atol=1e-10
    )
    assert not MarginSystem(Z @ Z.T, 1.0).fill(np.arange(6))


def test_a_copy_is_independent():
    gram = gram_of(np.random.default_rng(3))
    margin = MarginSystem(gram, 1.0)
    assert margin.fill(np.arange(8))
    margin.remove(3)
    other = margin.copy()
    margin.append(10)
    other.append(20)
    for one, last in ((margin, 10), (other, 20)):
        members = [0, 1, 2, 4, 5, 6, 7, last]
        ones = np.ones(8)
        np.testing.assert_allclose(one.functions(ones), ones @ gram[members])
