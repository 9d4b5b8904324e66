"""Sums, products and kernels behind transforms: kernels again, two deep and deeper."""

import warnings
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from bisvm import BilevelSVC
from bisvm.kernels import (
    KERNELS,
    RBF,
    AdditiveChi2,
    Chi2,
    Factors,
    Linear,
    Polynomial,
    Precomputed,
    Product,
    Sum,
    Transformed,
    get_kernel,
)
from bisvm.testing import check_kernel
from bisvm.transforms import (
    Chain,
    Columns,
    Convolution1D,
    Convolution2D,
    Nonlinearity,
    Normalize,
    Parallel,
    Pool1D,
    Pool2D,
    Projection,
    Scale,
)
from tests.covering import crossed, marked

RNG = np.random.default_rng(0)
# Positive, as chi-square kernels want it, and no two points alike.
X = RNG.uniform(0.2, 2.0, size=(7, 6))
SIX = {"shape": (2, 3)}

TRANSFORMS = [
    Scale(0.7),
    Scale(per_feature=True),
    Columns([4, 1, 2]),
    Projection(n_components=2),
    Convolution1D(n_filters=2, filter_shape=3),
    Convolution1D(n_filters=2, filter_shape=3, padding="same", normalize="ball"),
    Convolution2D(n_filters=2, filter_shape=(2, 2), **SIX),
    Pool1D(2, kind="mean"),
    Pool1D(2, kind="max"),
    Pool1D(3, kind="energy"),
    Pool2D((2, 1), kind="energy", **SIX),
    Nonlinearity("tanh"),
    Nonlinearity("square"),
    Normalize(),
    Parallel((Scale(0.5), Convolution1D(n_filters=1, filter_shape=2))),
]


def needs_positive(kernel):
    return isinstance(kernel, (Chi2, AdditiveChi2))


def kept_positive(transform):
    return isinstance(transform, (Scale, Columns, Pool1D, Pool2D))


NAMES = list(KERNELS)
NEXT = list(pairwise(NAMES))


def pairs(first):
    """All pairs of kernels; those that are next to each other first, in turn."""
    return [
        pytest.param(pair, id=" and ".join(pair), marks=marked(pair not in first))
        for pair in combinations_with_replacement(NAMES, 2)
    ]


# Every kernel is in a sum or in a product in `make test`.
SUMS, PRODUCTS = pairs(NEXT[::2]), pairs(NEXT[1::2])


@pytest.mark.parametrize("pair", SUMS)
def test_sums_of_any_two_keep_the_contract(pair):
    first, second = map(get_kernel, pair)
    check_kernel(first.on([0, 1, 2]) + second, X)


@pytest.mark.parametrize("pair", PRODUCTS)
def test_products_of_any_two_keep_the_contract(pair):
    first, second = map(get_kernel, pair)
    check_kernel(first * second.on([3, 1]), X)


# Chi-square is for inputs that are not negative.
POSITIVE = [name for name in NAMES if needs_positive(get_kernel(name))]


@pytest.mark.parametrize(
    "name, transform",
    crossed([name for name in NAMES if name not in POSITIVE], TRANSFORMS, strength=1)
    + crossed(POSITIVE, [one for one in TRANSFORMS if kept_positive(one)], strength=1),
)
def test_any_kernel_behind_any_transform_keeps_the_contract(name, transform):
    kernel = get_kernel(name)
    check_kernel(kernel @ transform, X, sparse=False)


# Those that leave enough for another one, and what may follow a convolution.
WIDE = [*TRANSFORMS[:2], *TRANSFORMS[11:13]]
UNEVEN = [*TRANSFORMS[4:5], *TRANSFORMS[7:10], *TRANSFORMS[11:13]]


@pytest.mark.parametrize(
    "first, second",
    crossed(WIDE, [*TRANSFORMS[:4], *UNEVEN], strength=1)
    + crossed(TRANSFORMS[4:5], UNEVEN, strength=1),
)
def test_any_transform_behind_any_other_keeps_the_contract(first, second):
    check_kernel(RBF() @ second @ first, X, sparse=False)


@pytest.mark.parametrize(
    "kernel",
    [
        (RBF() + Linear()) * RBF(per_feature=True).on([3, 0]),
        2.0 * RBF().on([0, 1]) + (Polynomial(2) * RBF()).on([2, 3, 4]),
        (RBF() + Polynomial(2)) @ Projection(n_components=3),
        (RBF() @ Convolution1D(n_filters=1, filter_shape=3)) * (Linear() + RBF()),
        RBF()
        @ Pool2D((1, 2), kind="mean")
        @ Nonlinearity("softplus")
        @ Convolution2D(n_filters=3, filter_shape=(2, 2), shape=(2, 3)),
        RBF()
        @ Nonlinearity("tanh")
        @ Convolution1D(n_filters=2, filter_shape=2)
        @ Nonlinearity("square")
        @ Convolution1D(n_filters=2, filter_shape=2),
        Sum((RBF(), Linear()), (0.5, 2.0), scale="linear"),
    ],
    ids=repr,
)
def test_deep_compositions_keep_the_contract(kernel):
    check_kernel(kernel, X, sparse=False)


def test_a_precomputed_kernel_may_be_part_of_a_sum():
    K = RNG.uniform(size=(7, 7))
    K = K @ K.T
    rows = np.arange(7.0)[:, None]
    kernel = Precomputed(K).on([0]) + RBF(0.5).on([1, 2])
    expected = K + RBF(0.5)(X[:, :2])
    np.testing.assert_allclose(kernel(np.hstack([rows, X[:, :2]])), expected)


def test_operators_mean_what_they_say():
    Y = X[:4] + 0.1
    k1, k2 = RBF(0.3), Polynomial(2, gamma=0.5)
    np.testing.assert_allclose((k1 + k2)(X, Y), k1(X, Y) + k2(X, Y))
    np.testing.assert_allclose((3.0 * k1)(X, Y), 3.0 * k1(X, Y))
    np.testing.assert_allclose((k1 * k2)(X, Y), k1(X, Y) * k2(X, Y))
    np.testing.assert_allclose(k1.on([2, 0])(X, Y), k1(X[:, [2, 0]], Y[:, [2, 0]]))
    np.testing.assert_allclose((k1 @ Scale(2.0))(X, Y), k1(2 * X, 2 * Y))


def test_sums_and_products_are_taken_apart():
    k = RBF(1.0) + Linear() + 2.0 * RBF(0.1)
    assert isinstance(k, Sum) and len(k.kernels) == 3
    np.testing.assert_array_equal(k.weights, [1.0, 1.0, 2.0])
    assert len((RBF(1.0) * Linear() * RBF(0.1)).kernels) == 3
    nested = RBF(1.0) @ Nonlinearity("tanh") @ Scale(2.0)
    assert nested == Transformed(RBF(1.0), Chain((Scale(2.0), Nonlinearity("tanh"))))


def test_parameters_have_the_names_of_their_places():
    kernel = RBF(per_feature=True).on([1, 2]) + RBF() * Linear()
    parameters = {p.name: p for p in kernel.parameters(X)}
    assert list(parameters) == ["weights", "k1__gamma", "k2__k1__gamma"]
    assert parameters["k1__gamma"].labels == (1, 2)
    assert parameters["weights"].labels == ("k1", "k2")
    other = kernel.with_values({"k1__gamma": np.array([3.0, 4.0])})
    np.testing.assert_array_equal(other.kernels[0].kernel.gamma, [3.0, 4.0])
    assert kernel.kernels[0].kernel.gamma == "scale"


def test_arguments_of_parts_can_be_set_from_outside():
    model = BilevelSVC(RBF() + Linear() @ Scale(1.0))
    model = clone(model).set_params(kernel__k1__gamma=0.25)
    assert model.kernel.kernels[0] == RBF(0.25)
    model.set_params(kernel__k2__transform__scale=3.0)
    assert model.kernel.kernels[1].transform == Scale(3.0)


def test_a_search_calls_parameters_as_the_results_do():
    model = BilevelSVC(RBF().on([0, 1]) + RBF() @ Scale(2.0))
    changed = clone(model).set_params(kernel__k1__gamma=0.5, kernel__k2__scale=3.0)
    assert changed.kernel.kernels[0].kernel == RBF(0.5)
    assert changed.kernel.kernels[1].transform == Scale(3.0)
    assert model.kernel.kernels[0].kernel == RBF()


def test_a_transform_settles_once_for_both_arguments():
    kernel = RBF(1.0) @ Projection(n_components=2)
    np.testing.assert_allclose(kernel(X, X[:3]), kernel(X)[:, :3])


def test_names_pass_transforms_that_keep_columns():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    kernel = (RBF(0.5).on(["a", "b"]) + Linear()) @ Scale(2.0)
    np.testing.assert_allclose(kernel(frame), (RBF(0.5).on([0, 1]) + Linear())(2 * X))


def test_python_can_sum_kernels():
    parts = [RBF(0.5).on([0]), RBF(0.5).on([1]), Linear()]
    np.testing.assert_allclose(sum(parts)(X), sum(part(X) for part in parts))


def test_whole_numbers_are_numbers():
    counts = np.arange(12).reshape(6, 2)
    kernel = RBF(0.1) + Linear() + Polynomial(2, gamma=1.0)
    np.testing.assert_allclose(kernel(counts), kernel(counts.astype(float)))


def test_equal_kernels_have_equal_hashes():
    one, other = Sum((RBF(0.5), Linear())), Sum([RBF(np.float64(0.5)), Linear()])
    assert one == other and hash(one) == hash(other)


def test_a_search_turns_back_where_a_kernel_ends():
    data = np.abs(RNG.normal(size=(60, 4)))
    y = data[:, 0] > data[:, 1]
    kernel = Chi2() @ Projection(np.eye(4)[:3] + 0.01)
    model = BilevelSVC(kernel, cv=3, starts=1, max_iter=20, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.fit(data, y).score(data, y) > 0.7


def test_one_kernel_for_what_matters_and_one_for_the_rest():
    data = np.random.default_rng(1).normal(size=(650, 12))
    y = data[:, 0] * data[:, 1] > 0
    kernel = RBF().on([0, 1]) + RBF().on(list(range(2, 12)))
    scores = [
        BilevelSVC(each, starts=1, random_state=0)
        .fit(data[:150], y[:150])
        .score(data[150:], y[150:])
        for each in (kernel, "rbf")
    ]
    assert scores[0] > scores[1] + 0.1


def test_columns_may_be_named():
    frame = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["age", "bmi", "dose"])
    y = (frame["age"] * frame["dose"] > 0).astype(int)
    kernel = RBF(per_feature=True).on(["dose", "age"]) + RBF().on("bmi")
    model = BilevelSVC(kernel, random_state=0, max_iter=5, starts=1).fit(frame, y)
    by_number = RBF(per_feature=True).on([2, 0]) + RBF().on([1])
    twin = BilevelSVC(by_number, random_state=0, max_iter=5, starts=1)
    twin.fit(frame.to_numpy(), y)
    np.testing.assert_array_equal(
        model.decision_function(frame), twin.decision_function(frame.to_numpy())
    )
    assert model.relevance_.shape == (3,)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: RBF().on([0, 9])(X), "no column 9: X has 6 columns"),
        (lambda: RBF().on([0, 0]).validate(), "Column 0 is given twice"),
        (lambda: RBF().on([0, -6])(X), "Column 0 is given twice"),
        (lambda: RBF().on(slice(9, 12))(X), "at least one"),
        (lambda: RBF().on([0.5])(X), "whole numbers"),
        (lambda: RBF().on([]).validate(), "at least one"),
        (lambda: RBF().on(["a"])(X), "names, and here columns have none"),
        (lambda: RBF().on(["a"]).bind(["b", "c"]), "no column 'a': X has 'b', 'c'"),
        (lambda: RBF().on([True, False])(X), "mask of 2 columns, but X has 6"),
        (lambda: Sum((RBF(), Linear()), (1.0,)).validate(), "2 finite numbers"),
        (lambda: Sum((RBF(), Linear()), (0.0, 1.0)).validate(), "positive"),
        (
            lambda: Sum((RBF(), Linear()), (0.0, 0.0), scale="linear").validate(),
            "All weights of a sum of kernels are zero",
        ),
        (
            lambda: Sum((RBF(),), scale="root").validate(),
            "scale must be one of 'log', 'linear'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_only_kernels_and_transforms_combine():
    with pytest.raises(TypeError, match="`3 \\* k` scales one"):
        RBF() + 1.0
    with pytest.raises(TypeError, match="a transform is expected"):
        RBF() @ Linear()
    with pytest.raises(TypeError, match=r"pass an object, RBF\(\)"):
        get_kernel(RBF)
    with pytest.raises(TypeError, match="made of kernels"):
        Product((RBF(), Scale(1.0))).validate()


def test_masked_weights_are_weights():
    factors = Factors(RNG.normal(size=(9, 2)), RNG.normal(size=(6, 2)))
    mask = RNG.normal(size=(9, 6))
    W = factors.times(mask)
    dense = (factors.left @ factors.right.T) * mask
    Y, gram = RNG.normal(size=(6, 3)), RNG.normal(size=(9, 6))
    np.testing.assert_allclose(W.dense(), dense)
    np.testing.assert_allclose(W @ Y, dense @ Y)
    np.testing.assert_allclose(W.T @ gram, dense.T @ gram)
    np.testing.assert_allclose(W.dot(gram), np.sum(dense * gram))
    np.testing.assert_allclose(factors.dot(gram), np.sum(factors.dense() * gram))
    np.testing.assert_allclose(W.scaled(2.0).dense(), 2.0 * dense)
