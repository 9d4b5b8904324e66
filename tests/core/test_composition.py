"""Nested names: values, arguments and scikit-learn's conventions."""

import numpy as np
import pytest
from sklearn.base import clone

from bisvm.core.composition import prefixed, routed
from bisvm.core.parts import Parameter
from bisvm.testing import check_part
from bisvm.transforms import Columns, Convolution1D, Nonlinearity, Parallel, Pool1D
from bisvm.transforms import Scale as Scaling


def pair(first=2.0, second=3.0):
    return Parallel((Scaling(first), Scaling(second)))


def test_prefixed_names_keep_everything_else():
    given = Parameter("gamma", 2.0, (1.0, 3.0), unit=4.0)
    (found,) = prefixed("k1", [given])
    assert found.name == "k1__gamma"
    assert (found.value, found.bounds, found.unit) == (2.0, (1.0, 3.0), 4.0)
    assert given.name == "gamma"


def test_routed_splits_at_the_first_separator():
    assert routed({"k1__t2__scale": 1, "k1__gamma": 2, "weights": 3}) == {
        "k1": {"t2__scale": 1, "gamma": 2},
        "": {"weights": 3},
    }
    assert routed({}) == {}


def test_composites_are_parts():
    check_part(pair())
    check_part(Parallel([pair(), Nonlinearity("abs")]))


def test_deep_params_name_children_and_their_arguments():
    params = pair().get_params(deep=True)
    assert params["t1"] == Scaling(2.0)
    assert params["t2__scale"] == 3.0
    assert set(pair().get_params(deep=False)) == {"transforms"}


def test_deep_params_reach_any_depth():
    nested = Parallel((pair(), Scaling(5.0)))
    assert nested.get_params()["t1__t2__scale"] == 3.0
    nested.set_params(t1__t2__scale=7.0)
    assert nested == Parallel((pair(2.0, 7.0), Scaling(5.0)))


def test_set_params_does_not_change_a_shared_child():
    shared = Scaling(2.0)
    one, other = Parallel((shared, shared)), Parallel((shared,))
    assert one.set_params(t1__scale=9.0) is one
    assert one == pair(9.0, 2.0)
    assert shared == Scaling(2.0)
    assert other == Parallel((Scaling(2.0),))


def test_set_params_replaces_children_and_arguments_together():
    both = pair().set_params(t1=Pool1D(2), t1__window=3, t2__scale=4.0)
    assert both == Parallel((Pool1D(3), Scaling(4.0)))
    assert pair().set_params(transforms=(Scaling(),), t1__scale=6.0) == Parallel(
        (Scaling(6.0),)
    )


def test_set_params_on_a_clone():
    given = pair()
    assert clone(given).set_params(t1__scale=1.5) == pair(1.5)
    assert given == pair()


@pytest.mark.parametrize("name", ["t3", "t3__scale", "weights"])
def test_unknown_names(name):
    with pytest.raises(ValueError, match="has no part or argument .* 't1', 't2'"):
        pair().set_params(**{name: 1.0})


def test_unknown_argument_of_a_child():
    with pytest.raises(ValueError, match="Invalid parameter 'sclae'"):
        pair().set_params(t1__sclae=1.0)


def test_with_values_reaches_children():
    given = pair()
    assert given.with_values({"t2__scale": 8.0}) == pair(2.0, 8.0)
    assert given.with_values({}) is given
    assert given == pair()
    with pytest.raises(ValueError, match="has no part or argument 't3'"):
        given.with_values({"t3__scale": 8.0})


def test_parameters_and_with_values_agree():
    X = np.random.default_rng(0).normal(size=(5, 12))
    given = Parallel((Convolution1D(n_filters=2), Scaling(per_feature=True)))
    parameters = given.parameters(X)
    assert [p.name for p in parameters] == ["t1__filters", "t2__scale"]
    settled = given.with_values({p.name: p.value for p in parameters})
    assert settled.transforms[0].filters.shape == (2, 5)
    assert np.array_equal(settled(X), given(X))


def test_validate_reaches_children():
    with pytest.raises(ValueError, match="kind must be one of"):
        Parallel((Scaling(), Nonlinearity("rely"))).validate()
    with pytest.raises(ValueError, match="at least one"):
        Parallel(()).validate()
    with pytest.raises(TypeError, match="made of transforms; got 3"):
        Parallel((3,)).validate()


def test_names_of_columns_are_bound_in_children():
    bound = Parallel((Columns(["b"]), Columns(["a", "b"]))).bind(["a", "b"])
    assert bound.trace([0, 1]) == [1, 0, 1]
