"""BagOfVisualWords: how often which kind of patch occurs, and where in the image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bisvm.images.sift import DenseSIFT, opencv

DESCRIPTORS = ("sift", "root_sift")
NORMS = ("l1", "root")
# Where there are many images, so many descriptors are taken from one of them.
PER_IMAGE = 50


class BagOfVisualWords(TransformerMixin, BaseEstimator):
    """Histograms of visual words, for every cell of one or several grids.

        h[g, z, k] = #{points in cell z of grid g whose descriptor is nearest to
                       word k} / (#{points} #{grids})

    Descriptors are dense SIFT at several scales; the words are the centres that k-means
    finds among descriptors of the training images. A (1, 1) grid forgets where a word
    occurs, a (2, 2) grid tells the quarter of the image. An image's histograms are
    non-negative and sum to one, as chi-square kernels would have them: use them with
    `BilevelSVC(kernel="chi2")`, or with scikit-learn's `AdditiveChi2Sampler` and
    `BilevelLinearSVC` where there are many images.

    Needs OpenCV: `pip install 'bisvm[images]'`.

    Parameters
    ----------
    image_shape : (height, width) or (height, width, channels), optional
        Shape of an image, where images come as rows of X.
    n_words : int, default=300
        Size of the vocabulary.
    resize : int or (height, width), optional
        Images are brought to this size first; an int is the longer side. Give small
        images more pixels than they have: 28 x 28 digits do well at 56.
    scales : tuple of float, default=(4, 6, 8, 10)
        Widths in pixels of the bins of a descriptor, which has 4 x 4 of them.
    step : float, default=4
        Distance in pixels of neighbouring descriptors.
    grids : tuple of (rows, columns), default=((1, 1), (2, 2))
        Grids of cells with a histogram each. All grids have the same weight.
    descriptor : {"sift", "root_sift"}, default="sift"
        Descriptors are compared by their Euclidean distance, or by that of the square
        roots of their entries.
    normalize : {"l1", "root"}, default="l1"
        Histograms of sum one, or their square roots, whose inner products are those
        of the Hellinger kernel.
    n_descriptors : int, default=50_000
        Number of descriptors, drawn at random, among which words are looked for.
    random_state : int, RandomState or None, default=None
        Draws the descriptors and starts k-means.

    Attributes
    ----------
    vocabulary_ : array of shape (n_words, 128)
    image_shape_ : shape of the images seen in `fit`
    pixel_range_ : (float, float)
        Pixels that become black and white: (0, 255), or the range of the training
        images where they are not of type uint8.
    n_features_in_ : int
        Number of pixels, times channels.

    References
    ----------
    Lazebnik, Schmid and Ponce, "Beyond bags of features: spatial pyramid matching for
    recognizing natural scene categories", 2006. Seed 000, chapter 6, has its words and
    histograms from the PHOW program of VLFeat, of which this is a near relative.

    Examples
    --------
    A linear machine on an explicit map of the additive chi-square kernel:

    >>> from sklearn.datasets import load_digits
    >>> from sklearn.kernel_approximation import AdditiveChi2Sampler
    >>> from sklearn.pipeline import make_pipeline
    >>> from bisvm import BilevelLinearSVC
    >>> from bisvm.images import BagOfVisualWords
    >>> X, y = load_digits(n_class=3, return_X_y=True)
    >>> words = BagOfVisualWords(
    ...     (8, 8), n_words=40, resize=32, scales=(3, 5), random_state=0
    ... )
    >>> model = make_pipeline(
    ...     words, AdditiveChi2Sampler(), BilevelLinearSVC(random_state=0)
    ... )
    >>> model.fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.95  # doctest: +SKIP
    True

    The exponential chi-square kernel itself, C and gamma learned:

    >>> from bisvm import BilevelSVC
    >>> model = make_pipeline(words, BilevelSVC(kernel="chi2"))     # doctest: +SKIP
    """

    def __init__(
        self,
        image_shape: Any = None,
        *,
        n_words: int = 300,
        resize: Any = None,
        scales: Any = (4, 6, 8, 10),
        step: float = 4,
        grids: Any = ((1, 1), (2, 2)),
        descriptor: str = "sift",
        normalize: str = "l1",
        n_descriptors: int = 50_000,
        random_state: Any = None,
    ):
        self.image_shape = image_shape
        self.n_words = n_words
        self.resize = resize
        self.scales = scales
        self.step = step
        self.grids = grids
        self.descriptor = descriptor
        self.normalize = normalize
        self.n_descriptors = n_descriptors
        self.random_state = random_state

    # --- scikit-learn's face ----------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> BagOfVisualWords:
        """Find the vocabulary.

        Parameters
        ----------
        X : array of shape (n, height, width[, channels]) or (n, n_pixels)
            Images: uint8, or any numbers, whose range is then taken for that from
            black to white. Colours are turned to gray.
        y : ignored
        """
        self._check()
        images = as_images(X, self.image_shape)
        self.image_shape_ = images.shape[1:]
        self.n_features_in_ = int(np.prod(self.image_shape_))
        self.pixel_range_ = _pixel_range(images)
        rng = check_random_state(self.random_state)
        self.vocabulary_ = self._words(self._sample(images, rng), rng)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Histograms of shape (n, n_words * number of cells), cell after cell."""
        check_is_fitted(self)
        images = as_images(X, self.image_shape_)
        describe = self._describer()
        cells = _cells(describe.points, self._size(), self.grids)
        half_square = 0.5 * np.einsum("kd,kd->k", self.vocabulary_, self.vocabulary_)
        out = np.empty((len(images), len(self._cell_names()) * len(self.vocabulary_)))
        for row, image in zip(out, self._gray(images), strict=True):
            words = (describe(image) @ self.vocabulary_.T - half_square).argmax(axis=1)
            row[:] = np.bincount(
                (cells * len(self.vocabulary_) + words).ravel(), minlength=len(row)
            )
        out /= cells.size
        return np.sqrt(out) if self.normalize == "root" else out

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names such as "grid2x2_cell0,1_word17"; what goes in has no names."""
        check_is_fitted(self)
        names = [
            f"{cell}_word{word}"
            for cell in self._cell_names()
            for word in range(len(self.vocabulary_))
        ]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = self.image_shape is not None
        tags.input_tags.three_d_array = True
        return tags

    # --- parts ------------------------------------------------------------------------

    def _sample(self, images: np.ndarray, rng: Any) -> np.ndarray:
        """About `n_descriptors` descriptors, as many from each image that is drawn."""
        describe = self._describer()
        chosen = rng.permutation(len(images))[: -(-self.n_descriptors // PER_IMAGE)]
        share = -(-self.n_descriptors // len(chosen))
        sample = []
        for image in self._gray(images[chosen]):
            descriptors = describe(image)
            sample.append(descriptors[rng.permutation(len(descriptors))[:share]])
        return np.vstack(sample)

    def _words(self, sample: np.ndarray, rng: Any) -> np.ndarray:
        """Centres by k-means."""
        from sklearn.cluster import MiniBatchKMeans

        different = len(np.unique(sample, axis=0))
        if different < self.n_words:
            raise ValueError(
                f"n_words={self.n_words}, but only {different} different descriptors "
                f"were found in {len(sample)}. Ask for fewer words, or give more "
                "images, a smaller step or a larger n_descriptors."
            )
        means = MiniBatchKMeans(
            self.n_words, batch_size=4096, n_init=1, random_state=rng
        )
        return means.fit(sample).cluster_centers_

    def _describer(self) -> DenseSIFT:
        root = self.descriptor == "root_sift"
        return DenseSIFT(self._size(), self.scales, self.step, root)

    def _size(self) -> tuple[int, int]:
        """Height and width at which images are described."""
        height, width = self.image_shape_[:2]
        if self.resize is None:
            return height, width
        if isinstance(self.resize, Integral):
            factor = self.resize / max(height, width)
            return max(round(factor * height), 1), max(round(factor * width), 1)
        height, width = self.resize
        return height, width

    def _gray(self, images: np.ndarray) -> Iterator[np.ndarray]:
        """One image after the other: gray, uint8, of the size asked for."""
        cv2 = opencv()
        size = self._size()
        for image in images:
            gray = _to_gray(image, self.pixel_range_)
            if gray.shape != size:
                gray = cv2.resize(gray, size[::-1], interpolation=cv2.INTER_LINEAR)
            yield gray

    def _cell_names(self) -> list[str]:
        return [
            f"grid{rows}x{columns}_cell{i},{j}"
            for rows, columns in self.grids
            for i in range(rows)
            for j in range(columns)
        ]

    # --- checks -----------------------------------------------------------------------

    def _check(self) -> None:
        opencv()
        for name in ("n_words", "n_descriptors"):
            _check_count(name, getattr(self, name))
        _check_positive("step", self.step)
        if not isinstance(self.scales, Sequence | np.ndarray) or not len(self.scales):
            raise ValueError(
                f"scales={self.scales!r}; expected a tuple of widths, such as (4, 6)."
            )
        for scale in self.scales:
            _check_positive("every one of scales", scale)
        if not isinstance(self.grids, Sequence | np.ndarray) or not len(self.grids):
            raise ValueError(
                f"grids={self.grids!r}; expected a tuple of pairs, such as ((1, 1),)."
            )
        for grid in self.grids:
            _check_pair("every one of grids", grid)
        if isinstance(self.resize, Integral):
            _check_count("resize", self.resize)
        elif self.resize is not None:
            _check_pair("resize", self.resize)
        _check_option("descriptor", self.descriptor, DESCRIPTORS)
        _check_option("normalize", self.normalize, NORMS)


# --- images ---------------------------------------------------------------------------


def as_images(X: Any, image_shape: Any = None) -> np.ndarray:
    """X as an array of shape (n, height, width[, channels]), or an error.

    Rows of pixels are shaped by `image_shape`; images that have a shape must have this.
    """
    X = _numbers(X)
    shape = None if image_shape is None else tuple(image_shape)
    if X.ndim == 2:
        X = _shaped(X, shape)
    if X.ndim not in (3, 4) or (X.ndim == 4 and X.shape[3] not in (1, 3)):
        raise ValueError(
            f"X has shape {X.shape}; expected images of shape (n, height, width), "
            "(n, height, width, 1) or (n, height, width, 3), or rows of pixels and "
            "image_shape."
        )
    if shape is not None and X.shape[1:] != shape:
        raise ValueError(f"X has images of shape {X.shape[1:]}; expected {shape}.")
    if not X.size:
        raise ValueError(f"X has shape {X.shape}: there is no image, or no pixel.")
    return X


def _numbers(X: Any) -> np.ndarray:
    try:
        X = np.asarray(X)
    except ValueError as error:
        raise ValueError(
            "X is no array; expected images of one shape. Resize them first."
        ) from error
    if X.dtype.kind not in "buif":
        raise ValueError(
            f"X has type {X.dtype}; expected an array of numbers, images of one shape."
        )
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        raise ValueError("X has pixels that are NaN or infinite; fill them in first.")
    return X


def _shaped(X: np.ndarray, shape: tuple[int, ...] | None) -> np.ndarray:
    if shape is None:
        raise ValueError(
            f"X has shape {X.shape}: rows of pixels. Say what an image is, for "
            "instance image_shape=(28, 28), or pass X of shape (n, height, width)."
        )
    if X.shape[1] != np.prod(shape):
        raise ValueError(
            f"X has {X.shape[1]} pixels in a row; an image of shape {shape} has "
            f"{np.prod(shape)}."
        )
    return X.reshape(len(X), *shape)


def _pixel_range(images: np.ndarray) -> tuple[float, float]:
    if images.dtype == np.uint8:
        return 0.0, 255.0
    low, high = float(images.min()), float(images.max())
    return low, high if high > low else low + 1.0


def _to_gray(image: np.ndarray, pixel_range: tuple[float, float]) -> np.ndarray:
    """Luminance from 0 to 255, as uint8."""
    if image.ndim == 3:
        image = image @ [0.299, 0.587, 0.114] if image.shape[2] == 3 else image[..., 0]
    if image.dtype == np.uint8 and pixel_range == (0.0, 255.0):
        return np.ascontiguousarray(image)
    low, high = pixel_range
    levels = np.rint((image - low) * (255 / (high - low)))
    return levels.clip(0, 255).astype(np.uint8)


def _cells(points: np.ndarray, size: tuple[int, int], grids: Any) -> np.ndarray:
    """Number of the cell of every point, in each of the grids: shape (g, n)."""
    cells, first = [], 0
    for grid in grids:
        row, column = ((points + 0.5) * grid // size).astype(int).T
        cells.append(first + row * grid[1] + column)
        first += grid[0] * grid[1]
    return np.array(cells)


# --- arguments ------------------------------------------------------------------------


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}={value!r}; expected a whole number from 1 on.")


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be a positive number; got {value!r}.")


def _check_pair(name: str, value: Any) -> None:
    if np.shape(value) != (2,) or not all(
        isinstance(side, Integral) and int(side) >= 1 for side in value
    ):
        raise ValueError(f"{name} must be two whole numbers from 1 on; got {value!r}.")


def _check_option(name: str, value: Any, options: tuple[str, ...]) -> None:
    if value not in options:
        raise ValueError(f"{name}={value!r}; expected one of {', '.join(options)}.")
