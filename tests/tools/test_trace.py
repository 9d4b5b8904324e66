"""What one default fit touches: the search knows no estimator."""

import pytest

from bisvm import BilevelSVC
from tests.covering import full
from tools.trace import trace_fit


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("defaults", [{"starts": 1, "max_iter": 2}, *full({})], ids=str)
def test_the_search_knows_no_estimator(defaults, monkeypatch):
    usual = BilevelSVC.__init__.__kwdefaults__
    monkeypatch.setattr(BilevelSVC.__init__, "__kwdefaults__", {**usual, **defaults})
    trace = trace_fit()
    assert {"search/units.py", "search/observer.py"} <= set(trace.files)
    assert not trace.methods
    assert not trace.handed
    assert trace.depth == 0
