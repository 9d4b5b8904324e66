"""Landmark machines whose features are computed in blocks of rows."""

import numpy as np
import pytest
from scipy import sparse

from bisvm import Chunks
from bisvm.bilevel.problem import Landmarks
from bisvm.data.matrices import weighted_squares
from bisvm.kernels import RBF, Factors, Matern, Polynomial
from bisvm.losses import Quartic, get_loss
from bisvm.machines.features import KernelFeatures
from bisvm.machines.landmarks import LeftOut, landmark_machine
from bisvm.machines.passes import BlockProblem, Sharing
from bisvm.solvers import get_solver
from bisvm.testing import check_gradient, check_machine
from tests.covering import crossed
from tests.problems import INTERCEPTS, SMOOTH_LOSSES, make_objective, three_classes

RNG = np.random.default_rng(0)
N, D, Q = 600, 3, 4
X = RNG.normal(size=(N, D))
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N) > 0, 1.0, -1.0)
LABELS = np.repeat(Y[:, None], Q, axis=1)
FOLD = RNG.integers(Q, size=N)
WEIGHT = RNG.uniform(0.5, 2.0, size=N)
TRAIN = np.where(FOLD[:, None] == np.arange(Q), 0.0, WEIGHT[:, None])
CHOSEN = np.sort(RNG.choice(N, 40, replace=False))
KERNEL = RBF(gamma=0.4)


def machine(rows, loss="quartic", intercept="free", C=2.0, kernel=KERNEL):
    given = LABELS, C * TRAIN, get_loss(loss), intercept
    return landmark_machine(*given, kernel, rows, CHOSEN)


def chunks(n_rows=130):
    return Chunks.of(X, rows=n_rows)


# --- features -------------------------------------------------------------------------


@pytest.mark.parametrize("stored", ["memory", "chunks", "sparse"])
def test_products_are_those_of_the_features(stored, monkeypatch):
    monkeypatch.setattr("bisvm.machines.features.DROPPED_ENTRIES", 40 * 37)
    rows = {
        "memory": X,
        "chunks": chunks(),
        "sparse": Chunks.of(sparse.csr_array(X), rows=100),
    }
    features = KernelFeatures(KERNEL, rows[stored], X[CHOSEN])
    K, B = KERNEL.gram(X, X[CHOSEN]), RNG.normal(size=(40, 3))
    assert features.shape == K.shape
    np.testing.assert_allclose(features @ B, K @ B, atol=1e-12)
    np.testing.assert_allclose(features.T @ TRAIN, K.T @ TRAIN, atol=1e-11)
    np.testing.assert_allclose(abs(features).T @ TRAIN, K.T @ TRAIN, atol=1e-11)
    np.testing.assert_allclose(features[[5, 3]], K[[5, 3]], atol=1e-14)
    some = np.arange(0, N, 7)
    np.testing.assert_allclose(features.keep(some) @ B, K[some] @ B, atol=1e-12)
    squares = weighted_squares(K, TRAIN)
    np.testing.assert_allclose(weighted_squares(features, TRAIN), squares, atol=1e-10)


@pytest.mark.parametrize("kernel", [KERNEL, RBF(np.ones(D), per_feature=True)])
def test_the_kernel_gradient_is_a_sum_over_blocks(kernel):
    left, right = RNG.normal(size=(N, 2)), RNG.normal(size=(40, 2))
    Z = X[CHOSEN]
    whole = kernel.pullback(X, Z, kernel.gram(X, Z), Factors(left, right)).theta
    found = KernelFeatures(kernel, chunks(), Z).pullback(Factors(left, right))
    np.testing.assert_allclose(found, whole, rtol=1e-11)


# --- the machine ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "intercept"), crossed(SMOOTH_LOSSES, INTERCEPTS, strength=1)
)
def test_the_machine_is_that_in_memory(loss, intercept):
    held, blocks = machine(X, loss, intercept), machine(chunks(), loss, intercept)
    solver = get_solver("auto")
    whole, found = (solver.solve(one, None, 1e-10) for one in (held, blocks))
    assert found.status == "converged"
    np.testing.assert_allclose(found.fitted, whole.fitted, atol=1e-6)
    # The answer is optimal by the measure of the machine in memory.
    assert held.residual(found.x, held.tangent(found.fitted)).max() < 1e-8


@pytest.mark.parametrize("kernel", [Matern(1.5, gamma=0.5), Polynomial(2)])
def test_other_kernels(kernel):
    kernel = kernel.with_values({p.name: p.value for p in kernel.parameters(X)})
    solver = get_solver("auto")
    whole, found = (
        solver.solve(machine(rows, kernel=kernel, C=0.1), None, 1e-10).fitted
        for rows in (X, chunks())
    )
    np.testing.assert_allclose(found, whole, atol=1e-6)


@pytest.mark.parametrize("loss", ["quartic", "logistic"])
def test_block_sizes_do_not_matter(loss, monkeypatch):
    fits = []
    for n_rows, entries in ((N, 10**6), (130, 10**6), (17, 40 * 5)):
        monkeypatch.setattr("bisvm.machines.features.DROPPED_ENTRIES", entries)
        solver = get_solver("auto")
        fits.append(solver.solve(machine(chunks(n_rows), loss), None, 1e-10).fitted)
    np.testing.assert_allclose(fits[1], fits[0], atol=1e-7)
    np.testing.assert_allclose(fits[2], fits[0], atol=1e-7)


def test_the_order_of_rows_does_not_matter():
    order = RNG.permutation(N)
    given = LABELS[order], 2.0 * TRAIN[order], get_loss("logistic"), "free"
    place = np.argsort(order)[CHOSEN]
    mixed = landmark_machine(*given, KERNEL, Chunks.of(X[order], rows=130), place)
    solver = get_solver("auto")
    found = solver.solve(mixed, None, 1e-10).fitted
    whole = solver.solve(machine(chunks(), "logistic"), None, 1e-10).fitted
    np.testing.assert_allclose(found, whole[order], atol=1e-7)


def test_a_warm_start_takes_few_passes():
    blocks, solver = machine(chunks()), get_solver("auto")
    whole = solver.solve(blocks, None, 1e-10)
    again = solver.solve(blocks, whole.fitted, 1e-4)
    assert again.iterations <= 3 * Q
    np.testing.assert_allclose(again.fitted, whole.fitted, atol=1e-4)


@pytest.mark.parametrize("C", [1e-6, 1e5])
def test_weights_that_are_hard(C):
    solver = get_solver("auto")
    held, blocks = machine(X, C=C), machine(chunks(), C=C)
    whole, found = (solver.solve(one, None, 1e-8) for one in (held, blocks))
    values = [held.value(one.x, one.tangent) for one in (whole, found)]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("loss", "intercept"), crossed(SMOOTH_LOSSES, INTERCEPTS, strength=1)
)
def test_the_adjoint_is_that_in_memory(loss, intercept):
    held, blocks = machine(X, loss, intercept), machine(chunks(), loss, intercept)
    tangent = get_solver("auto").solve(held, None, 1e-8).tangent
    P = RNG.normal(size=LABELS.shape) * (TRAIN == 0)
    whole, found = (one.linearize(tangent).adjoint(P) for one in (held, blocks))
    size = np.abs(whole.values).max()
    np.testing.assert_allclose(found.values, whole.values, atol=1e-7 * size)
    again = blocks.fit_values(found.function)
    np.testing.assert_allclose(again, found.values, atol=1e-7 * size)


def test_the_contract_of_machines():
    rows, chosen = Chunks.of(X[:20], rows=7), np.arange(0, 20, 3)
    check_machine(lambda *given: landmark_machine(*given, KERNEL, rows, chosen))


# --- Hessians that folds share --------------------------------------------------------


def test_folds_share_their_squares():
    sharing = Sharing.of(LABELS, TRAIN)
    assert len(sharing.members) == Q
    D = RNG.uniform(0.5, 1.0, size=N)
    curvature = np.where(TRAIN > 0, D[:, None], 0.0)
    np.testing.assert_allclose(sharing.mean(curvature, TRAIN), curvature)
    blocks = machine(chunks())
    systems, _ = BlockProblem(blocks).systems(curvature, curvature)
    K, rhs = KERNEL.gram(X, X[CHOSEN]), RNG.normal(size=(41, Q))
    bordered = np.hstack([K, np.ones((N, 1))])
    found = systems.solve(rhs)
    for k in range(Q):
        H = bordered.T @ (curvature[:, [k]] * bordered)
        H[:-1, :-1] += blocks.precision
        np.testing.assert_allclose(H @ found[:, k], rhs[:, k], atol=1e-6)


def test_splits_that_share_nothing_have_their_own():
    train = (RNG.uniform(size=(N, Q)) < 0.5) * 1.0
    assert Sharing.of(LABELS, train) is None


# --- the gradient of H ----------------------------------------------------------------


@pytest.mark.parametrize("per_feature", [False, True], ids=["one width", "each"])
@pytest.mark.parametrize("loss", ["logistic", Quartic(0.5)], ids=repr)
def test_the_gradient_of_H(per_feature, loss):
    X, y = three_classes(90)
    landmarks = Landmarks(np.arange(0, 90, 6), np.zeros(1))
    gamma = np.array([0.5, 0.8]) if per_feature else 0.5
    objective = make_objective(
        Chunks.of(X, rows=40),
        y,
        landmarks,
        kernel=RBF(gamma, per_feature=per_feature),
        loss=loss,
        cv=3,
        weight=np.linspace(0.5, 1.5, 90),
        solver="auto",
        inner_tol=1e-10,
    )
    theta = objective.theta0 + 0.1
    _, gradient = objective(theta)
    assert len(gradient) == (3 if per_feature else 2)
    check_gradient(gradient, lambda x: objective(x)[0], theta, rtol=5e-6)


def test_what_is_left_out_is_that_in_memory():
    held, blocks = (LeftOut.of(KERNEL, rows, CHOSEN) for rows in (X, chunks()))
    assert blocks.mean == pytest.approx(held.mean, rel=1e-10)
    assert blocks.largest == pytest.approx(held.largest, rel=1e-10)
