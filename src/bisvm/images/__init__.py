"""From images to the histograms that chi-square kernels compare.

Imports no other folder of the package. A new descriptor goes into a file of its own, as
`sift.py`.

    images -> dense SIFT -> visual words -> spatial histograms -> a kernel, or a map

`BagOfVisualWords` is a scikit-learn transformer. It needs OpenCV, which comes with
`pip install 'bisvm[images]'` and is imported when descriptors are computed, not before.

>>> from bisvm.images import BagOfVisualWords
>>> BagOfVisualWords(n_words=50, random_state=0)
BagOfVisualWords(n_words=50, random_state=0)
"""

from bisvm.images.bag_of_words import BagOfVisualWords
from bisvm.images.sift import DenseSIFT

__all__ = ["BagOfVisualWords", "DenseSIFT"]
