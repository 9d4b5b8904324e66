"""The patches of an image: convolution as a matrix product, either way round.

With X_i the convolution matrix of image x_i (one row a position of the filter, one
column an entry of it; the CMT of Sugg 2018), a map w and a filter f::

    x_i * f = X_i f,      w'(x_i * f) = w'X_i f = <X_i, w f'>

Both arguments enter linearly, and so does the image. There are matrices A_f and B_w
with x * f = x A_f and w'X = x B_w, and an image v = A_f w = B_w f, the *template*, with
w'(x * f) = x'v. All work on the data is therefore a product of the images themselves
with a small matrix; the patches of all images at once, of which there would be
n x positions x entries, are never made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import sparse

from bisvm.core.types import Array
from bisvm.transforms.arguments import check_shape


@dataclass(frozen=True)
class Patches:
    """Every place where a filter fits into an image whole, with a stride of one.

    As everywhere in machine learning "convolution" does not flip the filter.

    Parameters
    ----------
    image_shape : (length,), (height, width) or (height, width, channels)
        Planes of one image stacked upon each other are an image of that height.
    filter_shape : (length,), (height, width) or (height, width, channels)
        A filter covers all of the image's axes that it does not name: (5, 5) is
        (5, 5, 3) on a colour image.
    """

    image_shape: tuple[int, ...]
    filter_shape: tuple[int, ...]

    def __post_init__(self) -> None:
        image, given = check_shape("image_shape", self.image_shape), self.filter_shape
        named = check_shape("filter_shape", given)
        if len(named) > len(image):
            raise ValueError(
                f"filter_shape={given!r} has {len(named)} axes, the image {image} has "
                f"{len(image)}: give image_shape=(height, width), or a filter_shape "
                f"of at most {len(image)}."
            )
        whole = named + image[len(named) :]
        if any(small > large for small, large in zip(whole, image, strict=True)):
            raise ValueError(
                f"filter_shape={given!r} does not fit into an image of shape {image}: "
                "choose a filter no larger than the image on any axis."
            )
        object.__setattr__(self, "image_shape", image)
        object.__setattr__(self, "filter_shape", whole)

    @cached_property
    def map_shape(self) -> tuple[int, ...]:
        """Shape of x * f; a channel axis that the filter covers whole is dropped."""
        sizes = tuple(
            1 + large - small
            for large, small in zip(self.image_shape, self.filter_shape, strict=True)
        )
        return sizes[:2] if sizes[2:] == (1,) else sizes

    @property
    def n_pixels(self) -> int:
        return math.prod(self.image_shape)

    @property
    def n_positions(self) -> int:
        return math.prod(self.map_shape)

    @property
    def n_entries(self) -> int:
        return math.prod(self.filter_shape)

    @cached_property
    def pixels(self) -> Array:
        """(n_positions, n_entries), which pixel each entry meets at each position."""
        numbers = np.arange(self.n_pixels).reshape(self.image_shape)
        views = sliding_window_view(numbers, self.filter_shape)
        return views.reshape(self.n_positions, self.n_entries)

    def matrix(self, image: Array) -> Array:
        """Return X_i, (n_positions, n_entries), of an image: Sugg's algorithm 3."""
        return image[self.pixels]

    def filtering(self, filters: Array) -> sparse.csc_array:
        """A_f, (n_pixels, m n_positions): x A_f are the m feature maps side by side."""
        rows = np.broadcast_to(self.pixels, (len(filters), *self.pixels.shape))
        values = np.broadcast_to(filters[:, None, :], rows.shape)
        ends = self.n_entries * np.arange(rows.size // self.n_entries + 1)
        shape = (self.n_pixels, len(ends) - 1)
        return sparse.csc_array((values.ravel(), rows.ravel(), ends), shape)

    def weighing(self, maps: Array) -> Array:
        """B_w, (n_pixels, m n_entries): x B_w are the m vectors w_k'X side by side."""
        out = np.zeros((len(maps), self.n_entries, self.n_pixels))
        entries = np.arange(self.n_entries)
        # For one entry every position meets another pixel: nothing is added twice.
        out[:, entries, self.pixels] = maps[:, :, None]
        return out.reshape(-1, self.n_pixels).T

    def template(self, maps: Array, filters: Array) -> Array:
        """v = sum_k A_{f_k} w_k, a flat image: sum_k w_k'(x * f_k) = x'v."""
        products = maps.T @ filters
        return np.bincount(self.pixels.ravel(), products.ravel(), self.n_pixels)
