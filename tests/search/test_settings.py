"""What a search is asked, and the bilevel problem that it makes."""

import numpy as np
import pytest

from bisvm import BilevelSVC
from bisvm.kernels import Linear, Precomputed
from bisvm.optimizers import Scan
from bisvm.search.settings import (
    approximation_of,
    check_starts,
    problem_of,
    searches_that_fit,
)
from tests.problems import toy_data
from tests.search.asked import make_data, make_settings


def test_a_chosen_kernel_is_no_longer_open():
    settings = make_settings(open_kernel=True).with_kernel(Linear())
    assert settings.model.kernel == Linear() and not settings.open_kernel


def test_a_precomputed_kernel_is_that_of_the_data():
    settings, data = make_settings(), make_data()
    same = settings.for_data(data)
    assert same.model is settings.model and same.criterion is settings.criterion
    gram = data.X @ data.X.T
    kernel = settings.for_data(make_data(matrix=gram)).model.kernel
    assert isinstance(kernel, Precomputed)


@pytest.mark.parametrize(
    ("loss", "n_learned", "chosen", "scanned"),
    [
        ("hinge", 1, True, True),
        ("hinge", 2, True, False),
        ("hinge", 1, False, False),
        ("quartic", 1, True, False),
    ],
)
def test_one_hyperparameter_of_the_hinge_is_scanned(loss, n_learned, chosen, scanned):
    settings = make_settings(loss=loss, chosen_optimizer=chosen)
    assert isinstance(settings.optimizer_of(n_learned), Scan) is scanned


def test_a_problem_has_a_column_for_every_split_and_task():
    settings, data = make_settings(), make_data()
    problem = problem_of(settings, data, data.tasks, None)
    assert problem.columns.labels.shape == (60, 3)
    assert problem.prior == settings.prior and problem.criterion == settings.criterion
    linear = problem_of(make_settings("linear"), data, data.tasks, None)
    assert linear.inner_tol == pytest.approx(0.01 * problem.inner_tol)


def test_the_structural_risk_learns_all_but_C():
    settings, data = make_settings(criterion="structural_risk"), make_data()
    problem = problem_of(settings, data, data.tasks, None)
    assert tuple(problem.learn) == ("gamma",) and problem.prior is None
    assert problem.columns.labels.shape == (60, 1)
    wrong = make_settings(criterion="structural_risk", learn=("gamma", "C"))
    with pytest.raises(ValueError, match="least at C = 0"):
        problem_of(wrong, data, data.tasks, None)


def test_linear_machines_are_never_approximated():
    settings, data = make_settings("linear"), make_data()
    assert approximation_of(settings, data, 1) is None
    assert searches_that_fit(settings, data, 1, None) == np.inf


def test_starts_are_checked_before_anything_else(tmp_path):
    for wrong in ("autto", [], [1.0], 2.5, True):
        with pytest.raises(ValueError, match="is not understood"):
            check_starts(wrong)
    with pytest.raises(ValueError, match="at least one start"):
        check_starts(0)
    path = tmp_path / "run.checkpoint"
    model = BilevelSVC(starts="autto", checkpoint=path, random_state=0)
    with pytest.raises(ValueError, match="'autto' is not understood"):
        model.fit(*toy_data(20))
    assert not path.exists()
