"""scikit-learn's own contract, in full."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bisvm import BilevelLinearSVC, BilevelSVC


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks([BilevelSVC(), BilevelLinearSVC()])
def test_the_estimator_is_one_of_scikit_learns(estimator, check):
    check(estimator)
