"""Histograms of images, to be compared by chi-square kernels.

Imports only types from `core`. A new descriptor goes into its own file, like `sift.py`.

    images -> dense SIFT -> visual words -> spatial histograms -> a kernel

`BagOfVisualWords` is a scikit-learn transformer. It needs OpenCV
(`pip install opencv-python-headless`), which is imported when descriptors are computed.

>>> from bisvm.images import BagOfVisualWords
>>> BagOfVisualWords(n_words=50, random_state=0)
BagOfVisualWords(n_words=50, random_state=0)
"""

from bisvm.images.bag_of_words import BagOfVisualWords
from bisvm.images.sift import DenseSIFT

__all__ = ["BagOfVisualWords", "DenseSIFT"]
