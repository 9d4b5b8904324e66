"""The bilevel program by IPOPT: a second opinion."""

import sys

import numpy as np
import pytest

from bisvm.published import Ipopt, SLPFilter
from tests.published.program.toy import bilevel_program, exact_value
from tests.published.test_slp_filter import noisy


def test_both_methods_find_the_same_minimum():
    pytest.importorskip("casadi")
    X, y = noisy(40)
    _, program, x = bilevel_program(X, y)
    other = Ipopt(max_iter=60, epsilon=1e-3).solve(program, x, exact_value(program))
    ours = SLPFilter().solve(program, x, exact_value(program))
    assert other.fun == pytest.approx(ours.fun, rel=1e-2)
    assert other.kkt <= 1e-6
    assert other.kkt_before <= 1e-4


def test_what_to_install(monkeypatch):
    X, y = noisy()
    _, program, x = bilevel_program(X, y)
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(ImportError, match="pip install casadi"):
        Ipopt().solve(program, x, exact_value(program))


def test_bad_arguments():
    for bad in ({"max_iter": 0}, {"tol": np.nan}, {"epsilon": -1.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            Ipopt(**bad).validate()
