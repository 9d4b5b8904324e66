"""What one default fit touches: the search knows no estimator."""

from tools.trace import trace_fit


def test_the_search_knows_no_estimator():
    trace = trace_fit()
    assert {"search/units.py", "search/observer.py"} <= set(trace.files)
    assert not trace.methods
    assert not trace.handed
    assert trace.depth == 0
