"""scikit-learn's own contract, in full."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bisvm import BilevelLinearSVC, BilevelLinearSVR, BilevelSVC, BilevelSVR

# The checks are about the interface, not about what is learned. It is shared by all:
# one with classes and one with numbers, one with a kernel and one without will do here.
QUICK = {"cv": 2, "random_state": 0, "starts": 1, "max_iter": 2}


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [BilevelSVC("rbf", multi_class="ovr", **QUICK), BilevelLinearSVR(**QUICK)]
)
def test_the_estimator_is_one_of_scikit_learns(estimator, check):
    check(estimator)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [BilevelSVC(), BilevelLinearSVC(), BilevelSVR(), BilevelLinearSVR()]
)
def test_it_is_with_the_defaults(estimator, check):
    check(estimator)
