"""Why a search ended, as a value with its sentence and advice."""

import pytest
from scipy.optimize import OptimizeResult

from bisvm.optimizers import BFGS
from bisvm.optimizers.base import ABNORMAL, LIMIT_REACHED
from bisvm.published import Bundle
from bisvm.search.reasons import (
    GO_ON,
    PERHAPS_A_KINK,
    Reason,
    beaten_by,
    converged_on_sample,
    default_machine,
    optimizer_ended,
)


@pytest.mark.parametrize(
    ("optimizer", "status", "advice"),
    [
        (BFGS(), ABNORMAL, PERHAPS_A_KINK),
        (BFGS(), LIMIT_REACHED, GO_ON),
        (Bundle(), ABNORMAL, GO_ON),
    ],
)
def test_advice_depends_on_the_status_and_not_on_words(optimizer, status, advice):
    result = OptimizeResult(status=status, message="It ended.")
    assert optimizer_ended(optimizer, result) == Reason("It ended.", advice)


def test_reasons_with_details_say_them():
    assert "nothing better was found than a default SVR" in str(default_machine("SVR"))
    assert "sample of 500 rows" in str(converged_on_sample(500))
    assert "by a rule and another." in str(beaten_by(("a rule", "another")))
