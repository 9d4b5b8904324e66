"""Histograms of visual words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import Tags, check_array, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from bisvm.core.types import Array, ArrayLike, UserData
from bisvm.images.sift import DenseSIFT, opencv

# Descriptors taken from one image if there are many images: 1000 images then give the
# 50,000 descriptors of the default.
PER_IMAGE = 50
# Luminance of red, green and blue (ITU-R BT.601, as in OpenCV).
LUMINANCE = (0.299, 0.587, 0.114)


@dataclass(eq=False, repr=False)
class BagOfVisualWords(TransformerMixin, BaseEstimator):
    """Compute histograms of visual words, for every cell of one or several grids.

        h[g, z, k] = #{points in cell z of grid g whose descriptor is nearest to
                       word k} / (#{points} #{grids})

    Descriptors are dense SIFT at several scales; the words are k-means centres of
    descriptors of the training images. A (1, 1) grid ignores where a word occurs, a
    (2, 2) grid counts in quarters of the image. The histograms of an image are not
    negative and sum to one, as chi-square kernels require: use them with
    `BilevelSVC(kernel="chi2")`, or, for many images, with scikit-learn's
    `AdditiveChi2Sampler` and `BilevelLinearSVC`.

    Needs OpenCV: `pip install opencv-python-headless`.

    Parameters
    ----------
    image_shape : (height, width) or (height, width, channels), optional
        Shape of an image, if images are rows of X.
    n_words : int, default=300
        Size of the vocabulary.
    resize : int or (height, width), optional
        Size to which images are scaled first; an int is the longer side. Enlarge small
        images: 56 is a good size for 28 x 28 digits.
    scales : tuple of float, default=(4, 6, 8, 10)
        Widths in pixels of the 4 x 4 bins of a descriptor.
    step : float, default=4
        Distance in pixels of neighbouring descriptors.
    grids : tuple of (rows, columns), default=((1, 1), (2, 2))
        Grids of cells, each with a histogram. All grids have the same weight.
    descriptor : {"sift", "root_sift"}, default="sift"
        Descriptors are compared by their Euclidean distance, or by that of the square
        roots of their entries.
    normalize : {"l1", "root"}, default="l1"
        Histograms of sum one, or their square roots, whose inner products are those
        of the Hellinger kernel.
    n_descriptors : int, default=50_000
        Number of descriptors, drawn at random, for k-means.
    random_state : int, RandomState or None, default=None
        Draws the descriptors and starts k-means.

    Attributes
    ----------
    vocabulary_ : array of shape (n_words, 128)
    image_shape_ : shape of the images seen in `fit`
    pixel_range_ : (float, float)
        Pixel values of black and white: (0, 255), or the range of the training images
        if they are not of type uint8.
    n_features_in_ : int
        Number of pixels, times channels.

    References
    ----------
    Lazebnik, Schmid and Ponce, "Beyond bags of features: spatial pyramid matching for
    recognizing natural scene categories", 2006. Klatzer 2014, chapter 6, uses the
    similar PHOW program of VLFeat.

    Examples
    --------
    A linear SVM on an explicit map of the additive chi-square kernel:

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

    _parameter_constraints = {
        "image_shape": [None, "array-like"],
        "n_words": [Interval(Integral, 1, None, closed="left")],
        "resize": [None, Interval(Integral, 1, None, closed="left"), "array-like"],
        "scales": ["array-like"],
        "step": [Interval(Real, 0, None, closed="neither")],
        "grids": ["array-like"],
        "descriptor": [StrOptions({"sift", "root_sift"})],
        "normalize": [StrOptions({"l1", "root"})],
        "n_descriptors": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    image_shape: Sequence[int] | None = None
    _: KW_ONLY
    n_words: int = 300
    resize: int | Sequence[int] | None = None
    scales: Sequence[float] = (4, 6, 8, 10)
    step: float = 4
    grids: Sequence[Sequence[int]] = ((1, 1), (2, 2))
    descriptor: Literal["sift", "root_sift"] = "sift"
    normalize: Literal["l1", "root"] = "l1"
    n_descriptors: int = 50_000
    random_state: int | np.random.RandomState | None = None

    def fit(self, X: UserData, y: object = None) -> Self:
        """Find the vocabulary.

        Parameters
        ----------
        X : array of shape (n, height, width[, channels]) or (n, n_pixels)
            Images of type uint8, or of other numbers, whose range is then taken as that
            from black to white. Colours are converted to gray.
        y : ignored

        Returns
        -------
        self
        """
        opencv()
        self._validate_params()
        self._check_pairs()
        images = as_images(X, self.image_shape)
        self.image_shape_ = images.shape[1:]
        self.n_features_in_ = int(np.prod(self.image_shape_))
        self.pixel_range_ = _pixel_range(images)
        rng = check_random_state(self.random_state)
        self.vocabulary_ = self._words(self._sample(images, rng), rng)
        return self

    def transform(self, X: UserData) -> Array:
        """Compute the histograms of images.

        Parameters
        ----------
        X : array of shape (n, height, width[, channels]) or (n, n_pixels)

        Returns
        -------
        array of shape (n, n_words * number of cells), cell after cell
        """
        check_is_fitted(self)
        images = as_images(X, self.image_shape_)
        describe = self._describer()
        cells = _cells(describe.points, self._size(), self.grids)
        n_words = len(self.vocabulary_)
        out = np.empty((len(images), len(self._cell_names()) * n_words))
        for row, image in zip(out, self._gray(images), strict=True):
            words = pairwise_distances_argmin(describe(image), self.vocabulary_)
            places = cells * n_words + words
            row[:] = np.bincount(places.ravel(), minlength=len(row))
        out /= cells.size
        return np.sqrt(out) if self.normalize == "root" else out

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Return names such as "grid2x2_cell0,1_word17"; input names are ignored."""
        check_is_fitted(self)
        names = [
            f"{cell}_word{word}"
            for cell in self._cell_names()
            for word in range(len(self.vocabulary_))
        ]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = self.image_shape is not None
        tags.input_tags.three_d_array = True
        return tags

    def _sample(self, images: Array, rng: np.random.RandomState) -> Array:
        """About `n_descriptors` descriptors, as many from each image that is drawn."""
        describe = self._describer()
        chosen = rng.permutation(len(images))[: -(-self.n_descriptors // PER_IMAGE)]
        share = -(-self.n_descriptors // len(chosen))
        sample = []
        for image in self._gray(images[chosen]):
            descriptors = describe(image)
            sample.append(descriptors[rng.permutation(len(descriptors))[:share]])
        return np.vstack(sample)

    def _words(self, sample: Array, rng: np.random.RandomState) -> Array:
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
        centres: Array = means.fit(sample).cluster_centers_
        return centres

    def _describer(self) -> DenseSIFT:
        root = self.descriptor == "root_sift"
        return DenseSIFT(self._size(), self.scales, self.step, root)

    def _size(self) -> tuple[int, int]:
        """Height and width at which images are described."""
        height, width = self.image_shape_[:2]
        if self.resize is None:
            return height, width
        first, *second = (int(side) for side in np.ravel(self.resize))
        if second:
            return first, second[0]
        factor = first / max(height, width)
        return max(round(factor * height), 1), max(round(factor * width), 1)

    def _gray(self, images: Array) -> Iterator[Array]:
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

    def _check_pairs(self) -> None:
        """Check what scikit-learn's declarations cannot say of a sequence."""
        widths = np.asarray(self.scales, dtype=float)
        if widths.ndim != 1 or not len(widths) or not np.all(widths > 0):
            raise ValueError(
                f"scales={self.scales!r}; expected positive widths, such as (4, 6)."
            )
        pairs: list[tuple[str, ArrayLike]]
        pairs = [("every one of grids", grid) for grid in self.grids]
        if not pairs:
            raise ValueError("grids=(); expected pairs, such as ((1, 1),).")
        if self.resize is not None and np.ndim(self.resize):
            pairs.append(("resize", self.resize))
        for name, pair in pairs:
            sides = np.asarray(pair)
            if sides.shape != (2,) or sides.dtype.kind not in "iu" or sides.min() < 1:
                raise ValueError(
                    f"{name} must be two integers of at least 1; got {pair!r}."
                )


def as_images(X: UserData, image_shape: Sequence[int] | None = None) -> Array:
    """Return X as an array of shape (n, height, width[, channels]).

    Rows of pixels are reshaped to `image_shape`; other images must have this shape.
    """
    images: Array = check_array(X, ensure_2d=False, allow_nd=True)
    shape = images.shape[1:] if image_shape is None else tuple(image_shape)
    if images.ndim == 2 and np.prod(shape) == images.shape[1]:
        images = images.reshape(len(images), *shape)
    if images.shape[1:] != shape:
        raise ValueError(
            f"X has images of shape {images.shape[1:]}, {images[0].size} pixels; "
            f"expected {shape}, {np.prod(shape)} pixels."
        )
    if images.ndim not in (3, 4) or images.shape[3:] not in ((), (1,), (3,)):
        raise ValueError(
            f"X has shape {images.shape}; expected images of shape (n, height, width), "
            "(n, height, width, 1) or (n, height, width, 3), or rows of pixels and "
            "their shape, for instance image_shape=(28, 28)."
        )
    return images


def _pixel_range(images: Array) -> tuple[float, float]:
    if images.dtype == np.uint8:
        return 0.0, 255.0
    low, high = float(images.min()), float(images.max())
    return low, high if high > low else low + 1.0


def _to_gray(image: Array, pixel_range: tuple[float, float]) -> Array:
    """Luminance from 0 to 255, as uint8."""
    if image.ndim == 3:
        image = image @ LUMINANCE if image.shape[2] == 3 else image[..., 0]
    if image.dtype == np.uint8 and pixel_range == (0.0, 255.0):
        return np.ascontiguousarray(image)
    low, high = pixel_range
    levels = np.rint((image - low) * (255 / (high - low)))
    gray: Array = levels.clip(0, 255).astype(np.uint8)
    return gray


def _cells(
    points: Array, size: tuple[int, int], grids: Sequence[Sequence[int]]
) -> Array:
    """Number of the cell of every point, in each of the grids: shape (g, n)."""
    cells, first = [], 0
    for grid in grids:
        row, column = ((points + 0.5) * grid // size).astype(int).T
        cells.append(first + row * grid[1] + column)
        first += grid[0] * grid[1]
    return np.array(cells)
