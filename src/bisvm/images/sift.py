"""SIFT descriptors on a regular grid of points, at several scales, by OpenCV.

A descriptor is a 4 x 4 array of histograms of gradient directions, 8 directions each,
around a point: 128 numbers, invariant to brightness and contrast. Its `scale` is the
width of one of the 4 x 4 bins in pixels. Descriptors are not rotated.

    [1] Lowe, Distinctive image features from scale-invariant keypoints, 2004
    [2] Bosch, Zisserman and Munoz, Image classification using random forests and
        ferns, 2007: dense SIFT at several scales ("PHOW")
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from bisvm.core.optional import optional_module
from bisvm.core.types import Array

# OpenCV's bins are 3/2 as wide as the "size" of a key point.
BIN_OF_SIZE = 1.5
# Images are smoothed by scale / 6 before gradients are taken, as in VLFeat.
SMOOTHING = 1 / 6


def opencv() -> ModuleType:
    """Return the module cv2, or raise an ImportError that says how to install it."""
    return optional_module("cv2", "Visual words", "opencv-python-headless")


class DenseSIFT:
    """SIFT descriptors at the same points of every image of one shape.

    The points form a grid of spacing `step`, centred in the image; each has one
    descriptor for every scale. Images are treated as flat beyond their edges, so that
    points near an edge have descriptors as well.

    Parameters
    ----------
    shape : (height, width)
        Shape of the images.
    scales : sequence of float
        Widths of a descriptor's bins, in pixels.
    step : float
        Distance of neighbouring points, in pixels.
    root : bool, default=False
        Take the square roots of descriptors of sum 1 ("RootSIFT"): their Euclidean
        distance is then the Hellinger distance of the histograms.

    Attributes
    ----------
    points : array of shape (n_points * n_scales, 2)
        Coordinates (row, column) of the descriptors, scale by scale.

    Examples
    --------
    >>> describe = DenseSIFT((32, 32), scales=(4, 6), step=8)  # doctest: +SKIP
    >>> describe(np.zeros((32, 32), dtype=np.uint8)).shape  # doctest: +SKIP
    (32, 128)
    """

    def __init__(
        self,
        shape: tuple[int, int],
        scales: Sequence[float],
        step: float,
        root: bool = False,
    ):
        cv2 = opencv()
        self.root = root
        grid = np.meshgrid(*(_centred(side, step) for side in shape), indexing="ij")
        points = np.stack(grid, axis=-1).reshape(-1, 2)
        self.points = np.tile(points, (len(scales), 1))
        self._levels = [
            (
                cv2.SIFT_create(nOctaveLayers=1, sigma=max(SMOOTHING * scale, 0.5)),
                [cv2.KeyPoint(x, y, scale / BIN_OF_SIZE, 0) for y, x in points],
            )
            for scale in scales
        ]

    def __call__(self, image: Array) -> Array:
        """Return descriptors of a gray image (uint8), a row for each of `points`."""
        parts = [sift.compute(image, points)[1] for sift, points in self._levels]
        descriptors = np.vstack(parts)
        if self.root:
            total = descriptors.sum(axis=1, keepdims=True)
            roots: Array = np.sqrt(descriptors / np.maximum(total, 1))
            return roots
        # OpenCV scales descriptors to length 512 and rounds; flat surroundings give 0.
        return descriptors / np.float32(512)


def _centred(side: int, step: float) -> Array:
    """Coordinates `step` apart, centred in a side."""
    count = int((side - 1) // step) + 1
    return (side - 1 - (count - 1) * step) / 2 + step * np.arange(count, dtype=float)
