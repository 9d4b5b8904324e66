"""Convolutions against SciPy and plain loops, and the filters they start from."""

import numpy as np
import pytest
from scipy.fft import dctn
from scipy.signal import correlate, correlate2d
from scipy.sparse import csr_array

from bisvm.transforms import Chain, Convolution1D, Convolution2D, Parallel, grids

RNG = np.random.default_rng(3)


def loops(X, F, stride, before, places):
    """z_ijk, one by one, over X padded with zeros."""
    n, _, _, channels = X.shape
    m, fh, fw, _ = F.shape
    room = [
        2 * (length + size) for length, size in zip(X.shape[1:3], (fh, fw), strict=True)
    ]
    padded = np.zeros((n, *room, channels))
    top, left = before
    padded[:, top : top + X.shape[1], left : left + X.shape[2]] = X
    Z = np.empty((n, *places, m))
    for i, j in np.ndindex(*places):
        r, s = i * stride[0], j * stride[1]
        window = padded[:, r : r + fh, s : s + fw]
        Z[:, i, j] = np.einsum("nstc,kstc->nk", window, F)
    return Z


@pytest.mark.parametrize("mode", ["valid", "same"])
def test_signals_as_scipy(mode):
    X, F = RNG.normal(size=(3, 20)), RNG.normal(size=(2, 5))
    Z = Convolution1D(F, padding=mode)(X)
    for x, z in zip(X, Z, strict=True):
        for k, f in enumerate(F):
            np.testing.assert_allclose(z[:, k], correlate(x, f, mode), atol=1e-13)


@pytest.mark.parametrize("mode", ["valid", "same"])
def test_images_as_scipy(mode):
    X, F = RNG.normal(size=(2, 9, 8)), RNG.normal(size=(3, 5, 3))
    Z = Convolution2D(F, padding=mode)(X)
    for x, z in zip(X, Z, strict=True):
        for k, f in enumerate(F):
            np.testing.assert_allclose(z[..., k], correlate2d(x, f, mode), atol=1e-13)


@pytest.mark.parametrize("size", [(2, 3), (4, 4), (5, 1)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 1), (3, 2)])
def test_strides_and_channels_as_loops(size, stride):
    X, F = RNG.normal(size=(3, 8, 7, 2)), RNG.normal(size=(2, *size, 2))
    (fh, fw), (sh, sw) = size, stride
    places = ((8 - fh) // sh + 1, (7 - fw) // sw + 1)
    expected = loops(X, F, stride, (0, 0), places)
    found = Convolution2D(F, stride=stride)(X)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    places = (-(-8 // sh), -(-7 // sw))
    zeros = (places[0] - 1) * sh + fh - 8, (places[1] - 1) * sw + fw - 7
    before = max(zeros[0], 0) // 2, max(zeros[1], 0) // 2
    expected = loops(X, F, stride, before, places)
    found = Convolution2D(F, stride=stride, padding="same")(X)
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_blocks_change_nothing(monkeypatch):
    X, F = RNG.normal(size=(7, 9, 9, 2)), RNG.normal(size=(3, 4, 3, 2))
    convolution = Convolution2D(F, padding="same", stride=2)
    Z, G = convolution(X), RNG.normal(size=(7, 5, 5, 3))
    whole = convolution.pullback(X, G)
    monkeypatch.setattr(grids, "BLOCK_ENTRIES", 1300)
    np.testing.assert_allclose(convolution(X), Z, rtol=1e-13)
    blocks = convolution.pullback(X, G)
    np.testing.assert_allclose(blocks.theta, whole.theta, rtol=1e-12)
    np.testing.assert_allclose(blocks.X, whole.X, rtol=1e-12, atol=1e-13)


def test_stacked_colour_planes_share_the_filter():
    """Seed 002's colour images: one plane below the other."""
    X, f = RNG.normal(size=(2, 5, 6, 3)), RNG.normal(size=(1, 2, 2))
    planes = np.concatenate([X[..., c] for c in range(3)], axis=1)
    stacked = Convolution2D(f, shape=(15, 6))(planes.reshape(2, -1))
    for c in range(3):
        alone = Convolution2D(f)(X[..., c])
        np.testing.assert_array_equal(stacked[:, 5 * c : 5 * c + 4], alone)


def test_delta_leaves_the_input_as_it_is():
    X = RNG.normal(size=(2, 6, 5, 3))
    convolution = Convolution2D(n_filters=3, start="delta", padding="same")
    np.testing.assert_allclose(convolution(X) * np.sqrt(3), X, atol=1e-15)
    x = RNG.normal(size=(2, 6))
    found = Convolution1D(n_filters=1, start="delta", filter_shape=4, padding="same")(x)
    np.testing.assert_array_equal(found[..., 0], x)


def test_cosines_are_the_lowest_of_the_dct():
    filters = Convolution2D(n_filters=6).parameters(np.zeros((1, 9, 9)))[0].value
    np.testing.assert_allclose(filters[0], np.full((5, 5), filters[0, 0, 0]))
    spectrum = np.array([dctn(f, norm="ortho") for f in filters]) * np.sqrt(6)
    assert {tuple(np.argwhere(np.abs(s) > 1e-12)[0]) for s in spectrum} == {
        (0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (2, 0)
    }  # fmt: skip
    gram = np.einsum("ist,jst->ij", filters, filters)
    np.testing.assert_allclose(gram, np.eye(6) / 6, atol=1e-14)


@pytest.mark.parametrize("start", ["cosine", "delta", "patches", "random"])
def test_starts_lie_on_the_ball(start):
    X = RNG.normal(size=(5, 8, 8, 2))
    convolution = Convolution2D(start=start, filter_shape=3, normalize="ball")
    (parameter,) = convolution.parameters(X)
    assert parameter.ball == 1.0
    assert parameter.value.shape == (4, 3, 3, 2)
    norms = np.sum(parameter.value**2, axis=(1, 2, 3))
    np.testing.assert_allclose(norms, 0.25)
    assert parameter.labels[:3] == ("0, 0, 0, 0", "0, 0, 0, 1", "0, 0, 1, 0")


def test_patches_find_what_the_images_are_made_of():
    """Bars in noise: the filters respond to the bars, not to brightness."""
    bars = np.zeros((2, 4, 4))
    bars[0, 1:3], bars[1, :, 1:3] = 1.0, 1.0
    X = 5.0 + bars[RNG.integers(2, size=400)] + 0.05 * RNG.normal(size=(400, 4, 4))
    convolution = Convolution2D(n_filters=2, filter_shape=4, start="patches")
    filters = convolution.parameters(X)[0].value
    np.testing.assert_allclose(filters.sum(axis=(1, 2)), 0.0, atol=1e-12)
    shapes = bars.reshape(2, -1) - 0.5
    match = np.abs(filters.reshape(2, -1) @ shapes.T) / 2.0 * np.sqrt(2)
    assert sorted(match.argmax(axis=1)) == [0, 1]
    assert np.all(match.max(axis=1) > 0.95)


def test_patches_come_from_samples_with_weight():
    X = RNG.normal(size=(6, 7, 7))
    other = X.copy()
    other[3:] *= RNG.normal(size=(3, 7, 7))
    weight = np.array([1.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    convolution = Convolution2D(filter_shape=3, start="patches")
    found = [convolution.parameters(A, weight)[0].value for A in (X, other)]
    np.testing.assert_array_equal(*found)


def test_a_seed_gives_one_start_and_another_seed_another():
    X = RNG.normal(size=(4, 12))
    first, again, other = (
        Convolution1D(start="random", random_state=seed)(X) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)


def test_filters_outside_the_ball_are_shrunk_at_the_start_only():
    F = np.array([[3.0, 0.0], [0.0, 4.0]])
    convolution = Convolution1D(F, normalize="ball")
    (parameter,) = convolution.parameters(np.zeros((1, 5)))
    np.testing.assert_allclose(parameter.value, F / 5.0)
    np.testing.assert_array_equal(
        convolution(np.ones((1, 5))), Convolution1D(F)(np.ones((1, 5)))
    )


def test_sizes_side_by_side():
    X = RNG.normal(size=(2, 6, 6))
    small, large = (
        Convolution2D(n_filters=m, filter_shape=s, padding="same")
        for m, s in ((2, 3), (1, 5))
    )
    both = Parallel((small, large))
    np.testing.assert_array_equal(
        both(X), np.concatenate([small(X), large(X)], axis=-1)
    )
    valid = both.set_params(t1__padding="valid", t2__padding="valid")
    assert valid(X).shape == (2, 4 * 4 * 2 + 2 * 2 * 1)


def test_layers():
    X = RNG.normal(size=(2, 10, 10))
    layer = Convolution2D(n_filters=3, filter_shape=3, shape=(10, 10))
    net = Chain((layer, Convolution2D(n_filters=2, filter_shape=3)))
    assert net(X.reshape(2, -1)).shape == (2, 6, 6, 2)
    shapes = [p.value.shape for p in net.parameters(X)]
    assert shapes == [(3, 3, 3), (2, 3, 3, 3)]


@pytest.mark.parametrize(
    ("convolution", "X", "message"),
    [
        (Convolution2D(), np.zeros((2, 36)), r"give shape=\(height, width\) or"),
        (Convolution2D(shape=(5, 7)), np.zeros((2, 36)), "does not multiply to the nu"),
        (Convolution2D(shape=(36,)), np.zeros((2, 36)), "shape must be"),
        (Convolution2D(shape=(9, 4)), np.zeros((2, 6, 6)), "leave shape out"),
        (Convolution2D(), np.zeros((2, 4, 9)), "do not fit into samples of shape"),
        (Convolution1D(filter_shape=9), np.zeros((2, 8)), "use smaller filters"),
        (
            Convolution1D(filter_shape=9, padding="same", start="patches"),
            np.zeros((2, 8)),
            "do not fit",
        ),
        (Convolution1D(start="patches"), np.ones((2, 8)), "patches of X are constant"),
        (Convolution1D(n_filters=6), np.zeros((2, 8)), "5 different filters"),
        (Convolution1D(n_filters=0), np.zeros((2, 8)), "n_filters must be an integer"),
        (Convolution1D(stride=0), np.zeros((2, 8)), "stride must be an integer"),
        (Convolution2D(stride=(1, 2, 3)), np.zeros((2, 8, 8)), "or 2 of them"),
        (Convolution1D(padding="sama"), np.zeros((2, 8)), "Did you mean 'same'"),
        (Convolution1D(start="patch"), np.zeros((2, 8)), "Did you mean 'patches'"),
        (Convolution1D(normalize="sphere"), np.zeros((2, 8)), "one of 'ball'"),
        (Convolution1D(random_state=None), np.zeros((2, 8)), "random_state must be"),
        (Convolution1D(np.ones(3)), np.zeros((2, 8)), r"the shape \(m, length\)"),
        (Convolution1D(np.ones((1, 3, 2))), np.zeros((2, 8)), "have 2 channels"),
        (Convolution1D([[1.0, np.nan]]), np.zeros((2, 8)), "must be finite"),
    ],
)
def test_bad_input(convolution, X, message):
    for call in (convolution.apply, convolution.parameters):
        with pytest.raises(ValueError, match=message):
            call(X)


def test_sparse_input():
    with pytest.raises(TypeError, match="toarray"):
        Convolution1D()(csr_array(np.eye(8)))
