"""The factor of the margin system against plain linear algebra."""

import numpy as np
import pytest
from scipy import sparse

from bisvm.hinge import DenseGram, LinearGram
from bisvm.hinge.gram import add_rows
from bisvm.hinge.margin import MarginSystem, backward, delete_row, forward


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


def plain_solution(gram, members, r, s):
    return np.linalg.solve(gram[np.ix_(members, members)], r), 0.0


def test_compiled_loops_against_numpy():
    rng = np.random.default_rng(0)
    A, rows, beta = rng.normal(size=(9, 5000)), np.array([1, 7, 3, 2, 8, 0, 1]), None
    for m in range(8):
        beta, f = rng.normal(size=m), np.ones(5000)
        add_rows(A, rows[:m], beta, f)
        np.testing.assert_allclose(f, 1.0 + beta @ A[rows[:m]], atol=1e-12)
    gram = gram_of(rng)
    L = np.asfortranarray(np.tril(np.linalg.cholesky(gram)) + np.triu(gram, 1))
    for m, k in ((12, 0), (13, 5), (11, 10), (2, 1), (1, 0)):
        factor, z = np.tril(L[:m, :m]), rng.normal(size=m)
        x = z.copy()
        forward(L, x)
        np.testing.assert_allclose(factor @ x, z, atol=1e-12)
        short = L.copy(order="F")
        both = np.stack([x, -2.0 * x])
        delete_row(short, both, k)
        rest = np.delete(np.arange(m), k)
        factor = np.linalg.cholesky(gram[np.ix_(rest, rest)])
        np.testing.assert_allclose(np.tril(short[: m - 1, : m - 1]), factor)
        np.testing.assert_allclose(factor @ both[0, :-1], z[rest], atol=1e-12)
        np.testing.assert_allclose(factor @ both[1, :-1], -2 * z[rest], atol=1e-12)
        x = z.copy()
        backward(L, x)
        np.testing.assert_allclose(np.tril(L[:m, :m]).T @ x, z, atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_a_linear_gram_matrix_is_that_of_the_array(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4)) * (rng.uniform(size=(20, 4)) < 0.6)
    dense, linear = DenseGram(X @ X.T), LinearGram(kind(X))
    rows, columns, beta = np.array([3, 5, 3]), np.array([0, 19]), rng.normal(size=3)
    few = np.array([1, 4, 7])
    for calls in (
        lambda K: K.diagonal(),
        lambda K: K.block(rows, columns),
        lambda K: K.block(rows[:0], columns),
        lambda K: K.functions(rows, beta),
        lambda K: K.functions(rows[:0], beta[:0]),
        lambda K: K.values(columns, rows, beta),
        lambda K: K.restricted(few).block(np.arange(3), np.arange(2)),
        lambda K: [len(K), K.scale()],
    ):
        np.testing.assert_allclose(calls(linear), calls(dense), atol=1e-13)
    assert DenseGram(np.asfortranarray(X @ X.T)).array.flags.c_contiguous


@pytest.mark.parametrize("bias", [True, False])
def test_solves_the_system_while_members_come_and_go(bias):
    rng = np.random.default_rng(0)
    gram = gram_of(rng)
    margin, members = MarginSystem.of(gram, bias), []
    held = rng.normal(size=30)
    margin.hold(held)
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
            solution = bordered_solution if bias else plain_solution
            expected = solution(gram, members, r, s)
            np.testing.assert_allclose(beta, expected[0], atol=1e-11)
            assert b == pytest.approx(expected[1], abs=1e-11)
            np.testing.assert_allclose(
                margin.functions(beta), beta @ gram[members], atol=1e-12
            )
            expected = solution(gram, members, held[members], s)
            found = margin.solve_held(s)
            np.testing.assert_allclose(found[0], expected[0], atol=1e-11)
            assert found[1] == pytest.approx(expected[1], abs=1e-11)


def test_filled_at_once_or_one_by_one(monkeypatch):
    gram = gram_of(np.random.default_rng(1))
    filled, grown, pieces = (MarginSystem.of(gram) for _ in range(3))
    assert not len(filled.fill(np.arange(5, 20)))
    assert all([grown.append(i) for i in range(5, 20)])
    monkeypatch.setattr("bisvm.hinge.margin._CHUNK", 4)
    assert not len(pieces.fill(np.arange(5, 20)))
    for other in (grown, pieces):
        np.testing.assert_allclose(filled.factor, other.factor, atol=1e-12)
    filled._L[2, 1] += 1.0
    assert filled.refactor()
    np.testing.assert_allclose(filled.factor, grown.factor, atol=1e-12)


@pytest.mark.parametrize("chunk", [7, 1000])
@pytest.mark.parametrize("bias", [True, False])
def test_of_many_dependent_points_a_basis_is_taken(bias, chunk, monkeypatch):
    monkeypatch.setattr("bisvm.hinge.margin._CHUNK", chunk)
    rng = np.random.default_rng(4)
    X = rng.integers(-1, 2, size=(60, 5)).astype(float)
    margin = MarginSystem.of(LinearGram(X), bias)
    points = rng.permutation(60)
    rest = margin.fill(points)
    assert len(margin) == 5 + bias
    assert sorted([*rest, *margin.members]) == list(range(60))
    features = np.column_stack([X, np.full(60, np.sqrt(margin.shift))])
    for i in rest:
        v = margin.combination(i)
        np.testing.assert_allclose(
            features[i] + v @ features[margin.members], 0.0, atol=1e-12
        )
    A = features[margin.members] @ features[margin.members].T
    np.testing.assert_allclose(margin.factor @ margin.factor.T, A, atol=1e-12)


def test_dependent_points_stay_out():
    """An affine combination is dependent: sum v = -1 moves neither f nor b."""
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(6, 8))
    Z[5] = 0.3 * Z[0] + 0.7 * Z[1]
    Z[4] = 2.0 * Z[2]
    margin = MarginSystem.of(Z @ Z.T)
    assert all([margin.append(i) for i in range(5)])  # Z[4] is not affine in Z[2]
    assert not margin.append(5)
    assert list(margin.members) == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(
        margin.combination(5), [-0.3, -0.7, 0.0, 0.0, 0.0], atol=1e-10
    )
    assert len(MarginSystem.of(Z @ Z.T).fill(np.arange(6))) == 1


def test_a_copy_is_independent():
    gram = gram_of(np.random.default_rng(3))
    margin = MarginSystem.of(gram)
    assert not len(margin.fill(np.arange(8)))
    margin.remove(3)
    other = margin.copy()
    margin.append(10)
    other.append(20)
    for one, last in ((margin, 10), (other, 20)):
        members = [0, 1, 2, 4, 5, 6, 7, last]
        ones = np.ones(8)
        np.testing.assert_allclose(one.functions(ones), ones @ gram[members])
