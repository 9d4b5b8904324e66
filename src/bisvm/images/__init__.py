"""Histograms of images, as chi-square kernels compare them.

Imports only types from `core`. A new descriptor goes into its own file, as `sift.py`.

    images -> dense SIFT -> visual words -> spatial histograms -> a kernel

`BagOfVisualWords` is a scikit-learn transformer. It needs OpenCV, which comes with
`pip install opencv-python-headless` and is imported when descriptors are computed.

>>> from bisvm.images import BagOfVisualWords
>>> BagOfVisualWords(n_words=50, random_state=0)
BagOfVisualWords(n_words=50, random_state=0)
"""

from bisvm.images.bag_of_words import BagOfVisualWords
from bisvm.images.sift import DenseSIFT

__all__ = ["BagOfVisualWords", "DenseSIFT"]
