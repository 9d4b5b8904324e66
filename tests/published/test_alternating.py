"""The single-loop methods against plain twins, and what both promise."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, issparse
from sklearn.base import clone

from bisvm import BilevelLinearSVC
from bisvm.hinge.active_set import ERROR, MARGIN, REST
from bisvm.published import single_loop
from bisvm.published.alternating import LinearFolds, arrays_of
from bisvm.published.single_loop import SGDDCD, BilevelSGD, visit
from bisvm.solvers.rows import Dense
from tests.covering import crossed, full
from tests.problems import toy_data

METHODS = [
    SGDDCD(iterations=40),
    SGDDCD("single", iterations=40),
    SGDDCD("sweep", "exact", iterations=40),
    SGDDCD("single", "exact", iterations=40),
    BilevelSGD(iterations=40),
]
methods = pytest.mark.parametrize("method", METHODS, ids=repr)


def problem(n=60, d=4, q=3, seed=0, weighted=False, intercept=True):
    """Two overlapping classes; point i is held out in column i mod q (one: mod 2)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X @ np.ones(d) + rng.normal(size=n) > 0, 1.0, -1.0)
    if intercept:
        X = np.column_stack([X, np.ones(n)])
    out = np.arange(n)[:, None] % max(q, 2) == np.arange(q)
    weights = rng.uniform(0.5, 2.0, size=(n, q)) if weighted else np.ones((n, q))
    return LinearFolds(
        X, np.repeat(y[:, None], q, axis=1), weights * ~out, weights * out, intercept
    )


def draw(points, weights, rng):
    """One of the points in proportion to its weight, or None."""
    if len(points) == 0:
        return None
    heights = np.cumsum(weights[points])
    return points[np.searchsorted(heights, rng.random() * heights[-1], side="right")]


def violators(X, y, weights, w):
    return np.flatnonzero((weights > 0) & (y * (X @ w) < 1))


def move(C, gradient, t, p, bounds):
    if gradient == 0:
        return C
    return np.clip(C - gradient / (t * np.sqrt(p) * abs(gradient)), *bounds)


def twin_sgd_dcd(folds, method, C, bounds, seed):
    """Algorithm 1 of the paper, line by line, with the published step."""
    X, rng = folds.X, np.random.default_rng(seed)
    n, q = folds.labels.shape
    alpha, at_bound = np.zeros((n, q)), np.zeros((n, q), dtype=bool)
    order = [np.flatnonzero(folds.train[:, k]) for k in range(q)]
    C_path, coefs = [C], []
    for t in range(1, method.iterations + 1):
        slopes, w = np.zeros(q), np.empty((X.shape[1], q))
        for k in range(q):
            y, train = folds.labels[:, k], folds.train[:, k]
            points = order[k]
            if method.reading == "sweep":
                for last in range(len(points) - 1, 0, -1):
                    other = int(rng.random() * (last + 1))
                    points[[last, other]] = points[[other, last]]
            else:
                points = points[[int(rng.random() * len(points))]]
            for l in points:
                beta = X.T @ (alpha[:, k] * y)
                target = alpha[l, k] - (y[l] * (beta @ X[l]) - 1) / (X[l] @ X[l])
                alpha[l, k] = min(max(target, 0), C * train[l])
                at_bound[l, k] = target >= C * train[l]
            w[:, k] = X.T @ (alpha[:, k] * y)
            if at_bound[:, k].any():
                inside = violators(X, y, folds.validation[:, k], w[:, k])
                j = draw(inside, folds.validation[:, k], rng)
                if j is not None:
                    free = X[(alpha[:, k] > 0) & ~at_bound[:, k]]
                    dw = X.T @ (train * y * at_bound[:, k])
                    if method.jacobian == "exact" and len(free):
                        rank = np.linalg.matrix_rank(free)
                        basis = np.linalg.svd(free)[2][:rank]
                        dw = dw - basis.T @ (basis @ dw)
                        dw = np.zeros_like(dw) if rank == len(dw) else dw
                    slopes[k] = -y[j] * (X[j] @ dw)
        C = move(C, slopes.mean(), t, folds.n_features, bounds)
        C_path.append(C)
        coefs.append(w)
    return np.array(C_path), np.array(coefs)


def twin_bilevel_sgd(folds, method, C, bounds, seed):
    """Equations 11, 15 and 17 of the paper."""
    X, rng = folds.X, np.random.default_rng(seed)
    q = folds.labels.shape[1]
    beta = rng.random((q, X.shape[1])).T.copy()
    C_path, coefs = [C], []
    for t in range(1, method.iterations + 1):
        slopes = np.zeros(q)
        for k in range(q):
            y, train, held = (
                a[:, k] for a in (folds.labels, folds.train, folds.validation)
            )
            l = draw(violators(X, y, train, beta[:, k]), train, rng)
            j = draw(violators(X, y, held, beta[:, k]), held, rng)
            pull = 0.0 if l is None else y[l] * X[l]
            beta[:, k] -= (beta[:, k] - C * pull) / t
            if l is not None and j is not None:
                slopes[k] = -y[j] * (X[j] @ pull)
        C = move(C, slopes.mean(), t, folds.n_features, bounds)
        C_path.append(C)
        coefs.append(beta.copy())
    return np.array(C_path), np.array(coefs)


@pytest.mark.parametrize("q, weighted", crossed([1, 3], [False, True], strength=1))
@methods
def test_the_compiled_loop_is_its_twin(method, weighted, q):
    # More features than free vectors, or the exact Jacobian would be zero.
    folds = problem(d=12, q=q, weighted=weighted)
    twin = twin_bilevel_sgd if isinstance(method, BilevelSGD) else twin_sgd_dcd
    C_path, coefs = twin(folds, method, 0.05, (0.01, 0.2), 5)
    found = method.replace(C_min=0.01, C_max=0.2).alternate(folds, 0.05, 5, record=True)
    assert len(np.unique(C_path)) > 5
    np.testing.assert_allclose(found.C_path, C_path, rtol=1e-12)
    np.testing.assert_allclose(found.coefs, coefs, rtol=1e-8, atol=1e-11)


@methods
def test_sparse_and_dense_rows_are_the_same_problem(method):
    folds = problem(weighted=True)
    X = np.where(np.abs(folds.X) > 0.4, folds.X, 0.0)
    weights = (folds.labels, folds.train, folds.validation, True)
    dense = method.alternate(LinearFolds(X, *weights), seed=2)
    sparse = method.alternate(LinearFolds(csr_array(X), *weights), seed=2)
    np.testing.assert_allclose(sparse.C_path, dense.C_path, rtol=1e-12)
    np.testing.assert_allclose(sparse.coef, dense.coef, rtol=1e-8, atol=1e-11)


def test_entries_of_a_sparse_row_that_add_up():
    folds = problem(d=2, intercept=False)
    n = len(folds.X)
    half = csr_array(
        (
            np.repeat(folds.X.ravel() / 2, 2),
            np.tile(np.int32([0, 0, 1, 1]), n),
            np.arange(0, 4 * n + 1, 4, dtype=np.int32),
        ),
        shape=folds.X.shape,
    )
    np.testing.assert_allclose(half.toarray(), folds.X)
    weights = (folds.labels, folds.train, folds.validation)
    found = SGDDCD(iterations=9).alternate(LinearFolds(half, *weights))
    expected = SGDDCD(iterations=9).alternate(folds)
    np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-9)
    assert half.nnz == 4 * n


@methods
def test_result(method):
    folds, method = problem(), method.replace(C_min=0.2, C_max=0.7)
    result = method.alternate(folds, 0.5, 1, record=True)
    assert result.C_path.shape == (41,)
    assert result.C_path[0] == 0.5
    assert result.coef.shape == (5, 3)
    assert result.coefs.shape == (40, 5, 3)
    np.testing.assert_array_equal(result.coefs[-1], result.coef)
    assert result.C == result.C_path[-1]
    np.testing.assert_allclose(result.x, [np.log(result.C)])
    assert (result.nit, result.status, result.success) == (40, 0, True)
    assert "40 iterations" in result.message
    plain = method.alternate(folds, 0.5, 1)
    assert "coefs" not in plain
    np.testing.assert_array_equal(plain.coef, result.coef)


@methods
def test_one_seed_one_answer(method):
    folds = problem()
    first, again, other = (method.alternate(folds, 0.3, seed=s) for s in (4, 4, 5))
    np.testing.assert_array_equal(first.coef, again.coef)
    np.testing.assert_array_equal(first.C_path, again.C_path)
    assert not np.array_equal(first.coef, other.coef)


@methods
def test_C_keeps_to_its_bounds(method):
    folds = problem()
    path = method.replace(C_min=0.1, C_max=0.3).alternate(folds, 5.0).C_path
    assert path[0] == 0.3
    assert path.min() >= 0.1 and path.max() <= 0.3
    assert len(np.unique(path)) > 1


@methods
def test_it_starts_at_C_min(method):
    assert method.alternate(problem()).C_path[0] == 1e-4
    assert method.replace(C_min=0.2).alternate(problem()).C_path[0] == 0.2


def test_the_constant_column_is_no_feature():
    """The first step of C has length 1 / sqrt(p)."""
    for intercept in (True, False):
        folds = problem(d=4, intercept=intercept)
        path = SGDDCD(iterations=1).alternate(folds, 0.01).C_path
        assert abs(path[1] - path[0]) == pytest.approx(0.5)


@pytest.mark.parametrize("jacobian", ["published", "exact"])
def test_the_single_reading_visits_one_point(jacobian):
    """On unit vectors w_i = alpha_i y_i: every change of alpha shows."""
    n, q = 30, 3
    out = np.arange(n)[:, None] % q == np.arange(q)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None].repeat(q, axis=1)
    folds = LinearFolds(np.eye(n), y, 1.0 * ~out, 1.0 * out)
    method = SGDDCD("single", jacobian, iterations=50)
    coefs = method.alternate(folds, 0.3, record=True).coefs
    changes = np.count_nonzero(np.diff(coefs, axis=0, prepend=0.0), axis=1)
    assert changes.max() == 1
    sweep = method.replace(reading="sweep", iterations=1)
    coef = sweep.alternate(folds, 0.3).coef
    assert (np.count_nonzero(coef, axis=0) == n - n // q).all()


@methods
def test_without_violators_C_stands_still(method):
    """Far apart: after the first steps no held-out point is inside the margin."""
    folds = problem(n=12, d=1, intercept=False)
    X = 100.0 * folds.labels[:, :1]
    folds = LinearFolds(X, folds.labels, folds.train, folds.validation)
    result = method.alternate(folds, 1.0)
    assert len(np.unique(result.C_path[10:])) == 1
    assert np.isfinite(result.coef).all()


def test_without_training_violators_the_weights_shrink():
    folds = problem(n=12, d=1, intercept=False)
    folds = LinearFolds(
        1e6 * folds.labels[:, :1], folds.labels, folds.train, folds.validation
    )
    coefs = BilevelSGD(iterations=5).alternate(folds, 1.0, record=True).coefs
    ratios = coefs[1:] / np.where(coefs[:-1] == 0, 1.0, coefs[:-1])
    shrunk = coefs[:-1] > 0
    expected = 1 - 1 / np.arange(2.0, 6.0)[:, None, None].repeat(3, axis=2)
    assert shrunk.any()
    np.testing.assert_allclose(ratios[shrunk], expected[shrunk])


def solve(folds, C, sweeps=4000):
    """The lower level of column 0, tightly, and where its dual variables are."""
    arrays = arrays_of(folds)
    n, d = folds.X.shape
    alpha, state, w, pull = np.zeros(n), np.zeros(n, np.int8), np.zeros(d), np.zeros(d)
    points = arrays.trained[: arrays.trained_starts[1]]
    tail = (points, alpha, state, w, pull)
    for _ in range(sweeps):
        visit(arrays.rows, arrays.sizes, arrays.labels[0], arrays.train[0], C, *tail)
    return alpha, state, w, pull, arrays


@pytest.mark.parametrize("storage", [np.asarray, *full(csr_array)])
@pytest.mark.parametrize("seed", [0, *full(1, 2, 3)])
def test_the_exact_jacobian_is_the_derivative_of_the_weights(seed, storage):
    C, h = 0.05, 1e-6
    folds = problem(d=12, seed=seed, weighted=True)
    rest = (folds.labels, folds.train, folds.validation, True)
    folds = LinearFolds(storage(folds.X), *rest)
    _, state, w, pull, arrays = solve(folds, C)
    (_, above, up, *_), (_, below, down, *_) = solve(folds, C + h), solve(folds, C - h)
    points = arrays.trained[: arrays.trained_starts[1]]
    np.testing.assert_array_equal(above[points], below[points])
    assert {REST, MARGIN, ERROR} == set(state[points])
    found = single_loop.without_free(arrays.rows, points, state, pull)
    differences = (up - down) / (2 * h)
    assert np.linalg.norm(found) > 1e-2
    scale = np.linalg.norm(differences)
    np.testing.assert_allclose(found, differences, rtol=0, atol=5e-6 * scale)
    same = single_loop.without_free(arrays.rows, points, state, w) / C
    np.testing.assert_allclose(found, same, rtol=0, atol=1e-8 * scale)
    # The published one leaves out what the free vectors do.
    assert np.linalg.norm(pull - differences) > 0.1 * scale


def test_the_visits_keep_the_pull_up_to_date():
    folds = problem(weighted=True)
    X, y, train = folds.X, folds.labels[:, 0], folds.train[:, 0]
    alpha, state, w, pull, _ = solve(folds, 0.4, 7)
    np.testing.assert_allclose(w, X.T @ (alpha * y), atol=1e-12)
    np.testing.assert_allclose(pull, X.T @ (train * y * (state == ERROR)), atol=1e-12)
    np.testing.assert_array_equal(alpha[state == ERROR], 0.4 * train[state == ERROR])


def test_weights_are_repetitions_of_a_point():
    """A point of weight two is two points, once the lower level is solved."""
    folds = problem(n=40, q=1)
    train = folds.train.copy()
    trained = np.flatnonzero(train[:, 0])
    twice = trained[:5]
    train[twice] = 2.0
    heavy = LinearFolds(folds.X, folds.labels, train, folds.validation, True)
    rows = np.append(np.arange(40), twice)
    copies = LinearFolds(
        np.ascontiguousarray(folds.X[rows]),
        folds.labels[rows],
        folds.train[rows],
        folds.validation[rows],
        True,
    )
    np.testing.assert_allclose(solve(heavy, 0.2)[2], solve(copies, 0.2)[2], atol=1e-8)


def test_free_vectors_that_span_the_space_leave_nothing():
    folds = problem(d=3, intercept=False)
    state = np.full(60, MARGIN, dtype=np.int8)
    rest = single_loop.without_free(Dense(folds.X), np.arange(60), state, np.ones(3))
    np.testing.assert_array_equal(rest, 0.0)
    # A multiple of the one free vector is in its span, up to rounding.
    state[1:] = REST
    rest = single_loop.without_free(
        Dense(folds.X), np.arange(60), state, 3.0 * folds.X[0]
    )
    np.testing.assert_array_equal(rest, 0.0)


def test_a_row_of_zeros_helps_nobody_and_harms_nobody():
    folds = problem(intercept=False)
    X = folds.X.copy()
    X[:3] = 0.0
    folds = LinearFolds(X, folds.labels, folds.train, folds.validation)
    for method in METHODS:
        assert np.isfinite(method.alternate(folds, 0.3).coef).all()


@methods
def test_it_is_a_part(method):
    assert clone(method) == method
    assert method.within(1e-3, 7) == method
    assert method.loosened(10.0) == method
    with pytest.raises(TypeError, match="training problems.*lbfgs"):
        method.minimize(lambda x: (0.0, x), [0.0])


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (SGDDCD(reading="listing"), "reading must be one of .*'listing'"),
        (SGDDCD(jacobian="true"), "jacobian must be one of .*'true'"),
        (SGDDCD(iterations=0), "iterations must be an integer of at least 1; got 0"),
        (BilevelSGD(C_min=0.0), "C_min must be a positive, finite number; got 0.0"),
        (BilevelSGD(C_min=2.0, C_max=1.0), "C_min <= C_max.*2.0.*1.0"),
    ],
)
def test_bad_parameters(method, message):
    with pytest.raises(ValueError, match=message):
        method.alternate(problem())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"C": -1.0}, "C = -1.0; expected a positive.*not log C"),
        ({"C": np.nan}, "C = nan"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        BilevelSGD().alternate(problem(), **arguments)


def changed(**changes):
    folds = problem(n=6, d=2, q=3)
    fields = ("X", "labels", "train", "validation", "intercept")
    given = {name: getattr(folds, name) for name in fields}
    given.update({name: change(given[name]) for name, change in changes.items()})
    return LinearFolds(**given)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": lambda X: X * np.nan}, "X must be finite"),
        ({"X": lambda X: X[:, :1].copy()}, "at least one feature"),
        ({"labels": lambda y: y[:, 0]}, r"shape \(6,\); expected \(6, q\)"),
        ({"labels": lambda y: (y + 1) / 2}, r"\+1 and -1 only; map the classes"),
        ({"train": lambda t: t[:, :1]}, r"train has shape \(6, 1\); expected \(6, 3\)"),
        ({"train": lambda t: -t}, "train holds weights that are negative"),
        ({"validation": lambda v: v * [1, 0, 1]}, "validation.*in column 1"),
    ],
)
def test_bad_folds(changes, message):
    with pytest.raises(ValueError, match=message):
        changed(**changes)


def test_rows_of_any_type_become_those_that_loops_read():
    plain = problem(n=6, d=2, q=3)
    for kind in (np.asfortranarray, lambda X: X.tolist(), csc_array):
        X = changed(X=kind).X
        X = X.toarray() if issparse(X) else X
        np.testing.assert_array_equal(X, plain.X)
        assert X.dtype == np.float64


# --- in an estimator ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sgd-dcd", "bilevel-sgd"])
def test_an_estimator_takes_the_methods_by_name(name):
    X, y = toy_data(60)
    settings = {"loss": "hinge", "criterion": "hinge", "fit_intercept": "penalized"}
    model = BilevelLinearSVC(optimizer=name, random_state=0, **settings).fit(X, y)
    again = BilevelLinearSVC(optimizer=name, random_state=0, **settings).fit(X, y)
    assert model.C_ == again.C_ == pytest.approx(model.result_.C)
    assert model.result_.nit == 150 and len(model.history_) == 1
    assert model.certificate_.reason.startswith("All 150 iterations were made")


def test_machines_that_the_methods_cannot_step_on_are_refused():
    X, y = toy_data(60)
    for settings in (
        {},
        {"loss": "hinge", "criterion": "hinge"},
        {"loss": "hinge", "fit_intercept": False},
        {"loss": "quartic", "criterion": "hinge", "fit_intercept": False},
    ):
        with pytest.raises(ValueError, match="SGDDCD.*linear machine with the hinge"):
            BilevelLinearSVC(optimizer="sgd-dcd", **settings).fit(X, y)
