"""SIFT descriptors on a regular grid of points, at several scales, by OpenCV.

A descriptor is a 4 x 4 array of histograms of gradient directions, 8 directions each,
around a point: 128 numbers, invariant to brightness and contrast. Its `scale` is the
width of one of the 4 x 4 bins in pixels. Descriptors stand upright.

    [1] Lowe, Distinctive image features from scale-invariant keypoints, 2004
    [2] Bosch, Zisserman and Munoz, Image classification using random forests and
        ferns, 2007: dense SIFT at several scales ("PHOW")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

LENGTH = 128
# OpenCV's bins are 3/2 as wide as the "size" of a key point.
BIN_OF_SIZE = 1.5
# Images are smoothed by scale / 6 before gradients are taken, as in VLFeat.
SMOOTHING = 1 / 6


def opencv() -> Any:
    """The module cv2, or an error that says how to get it."""
    try:
        import cv2
    except ImportError as error:
        raise ImportError(
            "Visual words need OpenCV, which is not installed: "
            "pip install 'bisvm[images]'"
        ) from error
    return cv2


class DenseSIFT:
    """SIFT descriptors at the same points of every image of one shape.

    The points are those of a grid of spacing `step`, centred in the image; at each
    there is one descriptor for every scale. What lies beyond the image's edge counts
    as flat, so that the points may cover all of the image, however small.

    Parameters
    ----------
    shape : (height, width) of the images
    scales : widths of a descriptor's bins, in pixels
    step : distance of neighbouring points, in pixels
    root : bool, default=False
        Take the square roots of descriptors of sum 1 ("RootSIFT"): their Euclidean
        distance is then the Hellinger distance of the histograms.

    Attributes
    ----------
    points : array of shape (n_points * n_scales, 2)
        Coordinates (row, column) of the descriptors, scale by scale.
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

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """Descriptors of a gray image (uint8), one row for each of `points`."""
        parts = [sift.compute(image, points)[1] for sift, points in self._levels]
        descriptors = np.vstack(parts)
        if self.root:
            total = descriptors.sum(axis=1, keepdims=True)
            return np.sqrt(descriptors / np.maximum(total, 1))
        # OpenCV's have length 512, rounded; flat surroundings give zero.
        return descriptors / np.float32(512)


def _centred(side: int, step: float) -> np.ndarray:
    """Coordinates `step` apart that leave as much free at both ends of a side."""
    count = int((side - 1) // step) + 1
    return (side - 1 - (count - 1) * step) / 2 + step * np.arange(count, dtype=float)
