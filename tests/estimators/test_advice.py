"""Advice names only arguments that the estimator has."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from bisvm import SVC, BilevelLinearSVC, BilevelLinearSVR, BilevelSVC, BilevelSVR
from bisvm.cli.main import _is_doubt
from bisvm.estimators.advice import with_advice
from bisvm.kernels import RBF, Laplacian
from bisvm.machines.regularization import Shared
from bisvm.search.history import Certificate
from bisvm.search.reasons import (
    ASKED,
    GO_ON,
    PERHAPS_A_KINK,
    Reason,
    beaten_by,
)
from tests.problems import toy_data

pytestmark = pytest.mark.usefixtures("brief_searches")

RULES = ("a linear rule",)


def advised(estimator, at_bounds=(), why=None, drop_in=False, rules=()):
    """The certificate of a search that did not converge."""
    why = beaten_by(rules) if rules else why or Reason("Stopped.", GO_ON)
    given = Certificate(
        0.0, 0.0, 0.0, False, why, at_bounds=at_bounds, beaten_by=tuple(rules)
    )
    return with_advice(given, estimator._settings(), drop_in=drop_in)


@pytest.mark.parametrize(
    "estimator, said, not_said",
    [
        (BilevelSVC("rbf"), "kernel='ard'", "BilevelSVC"),
        (BilevelSVC("ard"), "kernel='auto'", "'ard'"),
        (BilevelSVC(), "StandardScaler.", "kernel="),
        (BilevelSVC("precomputed"), "Compute the kernel", "kernel="),
        (BilevelLinearSVC(), "use BilevelSVC, which has kernels", "kernel="),
        (BilevelLinearSVR(), "use BilevelSVR, which has kernels", "kernel="),
    ],
)
def test_a_machine_worse_than_a_rule_is_given_what_it_has(estimator, said, not_said):
    found = advised(estimator, rules=RULES)
    assert said in found.advice and not_said not in found.advice
    # The reason is that doubt still, and is said once.
    assert found.why == found.doubt and "a linear rule" not in found.advice
    assert "bounds" not in found.advice


def test_the_drop_in_is_given_no_argument_that_it_lacks():
    beaten = advised(BilevelSVC("rbf"), rules=RULES, drop_in=True)
    assert "StandardScaler, or use BilevelSVC" in beaten.advice
    for advice in (GO_ON, PERHAPS_A_KINK):
        found = advised(BilevelSVC("rbf"), why=Reason("End.", advice), drop_in=True)
        assert "BilevelSVC" in found.advice and "optimizer=" not in found.advice
        assert found.reason == "End."
    at_bound = advised(
        BilevelSVC("rbf"), ("C at its upper bound, 1e+05",), drop_in=True
    )
    assert "with C at its upper bound, 1e+05. Give C a value" in at_bound.advice
    for why in ASKED:
        assert advised(BilevelSVC("rbf"), why=why, drop_in=True).why == why


@pytest.mark.parametrize(
    "estimator, where, said",
    [
        (BilevelSVC("rbf"), "C at its upper bound, 1", "=Shared(C_bounds=(low, high))"),
        (
            BilevelLinearSVC(regularization="per_feature"),
            "C[2] at its upper bound, 1",
            "regularization=PerFeature(C_bounds=(low, high))",
        ),
        (
            BilevelSVR("rbf"),
            "gamma at its lower bound, 1",
            "kernel=RBF(gamma_bounds=(low, high)) from bisvm.kernels",
        ),
        (
            BilevelSVC("ard"),
            "gamma[0] at its upper bound, 1",
            "kernel=RBF(per_feature=True, gamma_bounds=(low, high))",
        ),
        (
            BilevelSVC(RBF() + Laplacian()),
            "k1__gamma at its upper bound, 1",
            "gamma_bounds of the part of the kernel that has k1__gamma",
        ),
        (BilevelSVR(), "epsilon at its lower bound, 1", "those of epsilon"),
    ],
)
def test_a_search_that_ended_at_a_bound_names_the_argument(estimator, where, said):
    advice = advised(estimator, (where,)).advice
    assert f"The search ended with {where}. " in advice and said in advice


def test_features_without_use_are_no_reason_to_widen_bounds():
    useless = "gamma[4] at its lower bound, 1e-05"
    assert "bound" not in advised(BilevelSVC("ard"), (useless,)).advice
    many = tuple(f"C[{k}] at its upper bound, 1" for k in range(9))
    linear = BilevelLinearSVC(regularization="per_feature")
    advice = advised(linear, many).advice
    assert "; and 6 more. " in advice and advice.count("C_bounds") == 1


def test_bounds_are_widened_by_the_arguments_of_the_advice():
    """What the advice says can be written."""
    wide = BilevelSVC(
        kernel=RBF(per_feature=True, gamma_bounds=(1e-9, 1e9)),
        regularization=Shared(C_bounds=(1e-9, 1e9)),
        learn=(),
        random_state=0,
    )
    assert wide.fit(*toy_data(40)).C_ > 0


@pytest.mark.parametrize(
    "estimator, owner, advice",
    [
        (BilevelSVC("rbf", random_state=0), "model", "kernel='ard'"),
        (SVC(random_state=0), "model.tuned_", "StandardScaler, or use BilevelSVC"),
    ],
    ids=["BilevelSVC", "SVC"],
)
def test_the_warning_says_where_the_certificate_is(estimator, owner, advice):
    """Units that differ by 1e4: a linear rule on standardised features is better."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) * [1.0, 1.0, 1e4]
    y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator.fit(X, y)
    said = [str(w.message) for w in caught if w.category is ConvergenceWarning]
    assert len(said) == 1 and f"print({owner}.certificate_)" in said[0], said
    assert advice in said[0]
    # The command has a page for it, and does not repeat the warning.
    assert _is_doubt(said[0])
    # The expression of the warning can be evaluated.
    assert not eval(f"{owner}.certificate_", {"model": model}).converged
