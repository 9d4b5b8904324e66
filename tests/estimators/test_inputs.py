"""Any input is fitted correctly, or refused in clear words."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from scipy import sparse

from bisvm import BilevelSVC, ConvolutionalSVC, FeatureSelector
from tests.covering import full
from tests.estimators import inputs
from tests.estimators.inputs import Input, check_input
from tests.problems import toy_data, within

pytestmark = [
    pytest.mark.usefixtures("brief_searches"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
ANY = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}
TABLES = {
    "container": inputs.CONTAINERS,
    "numbers": inputs.NUMBERS,
    "labels": inputs.LABELS,
    "weights": inputs.WEIGHTS,
    "groups": inputs.GROUPS,
    "splits": inputs.SPLITS,
}
X, y = toy_data(40)
QUICK = {"starts": 1, "max_iter": 2, "random_state": 0}


@settings(max_examples=20, derandomize=True, **ANY)
@given(inputs.drawn())
def test_any_input(drawn):
    check_input(drawn)


@pytest.mark.full
@settings(max_examples=10_000, print_blob=True, **ANY)
@given(inputs.drawn())
def test_very_many_inputs(drawn):
    check_input(drawn)


@pytest.mark.full
@pytest.mark.parametrize("estimator", inputs.ESTIMATORS)
@pytest.mark.parametrize("part", TABLES)
def test_every_part_by_itself(part, estimator):
    for name in TABLES[part]:
        check_input(replace(Input(estimator), **{part: name}))


def test_three_labels_as_far_apart_as_integers_can_be():
    assert check_input(Input("linear", labels="large", n_classes=3, n=24)) == "fitted"


def test_an_exact_hinge_on_one_distinct_x():
    """Its final machine has no solution, which is said in words."""
    given = Input("linear hinge", numbers="one distinct x", splits="2", seed=1)
    assert check_input(replace(given, n=20, d=3, n_classes=3)) == "refused"


def test_an_outlier_in_the_only_column():
    check_input(Input("ard", numbers="outlier", d=1))


# --- what must not be refused ---------------------------------------------------------

GOOD = {
    "container": "array Fortran float32 float16 longdouble big-endian int8 bool object "
    "unmasked list csr csc coo dok frame nullable categorical".split(),
    "numbers": "normal, whole, constant column, one distinct x, zeros, duplicates, "
    "outlier, large, small, mixed units, large offset".split(", "),
    "labels": "int, negative, large, uint8, bool, float, text, object, list, series, "
    "nullable, string, categorical, Categorical, column, one member".split(", "),
    "weights": "none ones list linear object bool series nullable huge tiny".split(),
    "groups": ["none", "pairs", "alone", "text", "nullable", "categorical"],
    "splits": "2, 5, numpy, KFold, shuffled, leave one out, time series, repeated, "
    "pairs, generator, lists, masks, frames, yields halves".split(", "),
}
REFUSED = {
    "container": ["masked", "missing", "words", "duplicate names", "ragged"],
    "numbers": ["NaN", "inf", "huge", "tiny", "largest"],
    "labels": "NaN, None, missing, masked, continuous, bytes, all different".split(
        ", "
    ),
    "weights": ["zero", "negative", "NaN", "inf", "missing", "masked", "subnormal"],
    "groups": ["one", "NaN", "missing", "mixed", "short"],
    "splits": ["exhausted", "overlapping", "no training", "no validation", "beyond"],
}


@pytest.mark.parametrize("part", GOOD)
def test_usual_inputs_are_fitted_and_others_refused(part):
    plain = Input("linear", n=16)
    for name in GOOD[part]:
        assert check_input(replace(plain, **{part: name})) == "fitted", name
    for name in REFUSED[part]:
        assert check_input(replace(plain, **{part: name})) == "refused", name


# --- shapes ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rbf", "linear", *full("ard", "per feature")])
@pytest.mark.parametrize("shape", [(20, 1), (20, 10_000), *full((30_000, 30))])
def test_few_and_many_rows_and_columns(name, shape):
    labels = np.arange(shape[0]) % 2
    data = np.random.default_rng(0).normal(size=shape) + labels[:, None]
    with within(600):
        model = inputs.ESTIMATORS[name](cv=2).fit(data, labels)
    assert model.score(data, labels) > 0.7
    assert np.isfinite(model.decision_function(data)).all()


# --- messages -------------------------------------------------------------------------


def refused(message, data=X, labels=y, model=None, sample_weight=None, groups=None):
    model = BilevelSVC("rbf", **QUICK) if model is None else model
    with pytest.raises(ValueError, match=message):
        model.fit(data, labels, sample_weight=sample_weight, groups=groups)


def test_text_in_a_data_frame():
    words = pd.DataFrame({"a": ["high", "low"] * 20, "b": 1.0})
    refused("not numbers, such as 'high'.*OneHotEncoder", words)


def test_columns_of_one_name():
    twice = pd.DataFrame(X, columns=["a", "b", "a"])
    for model in (None, ConvolutionalSVC(filter_shape=(1,)), FeatureSelector()):
        refused("several columns of one name: a.*Rename", twice, model=model)


def test_masked_entries():
    masked = np.ma.masked_array(X, mask=X > 1.0)
    refused(f"X is a masked array, and {np.sum(X > 1.0)} of its entries", masked)
    refused("y is a masked array, and 25 of its", X, np.ma.masked_equal(y, 1))
    model = BilevelSVC("rbf", **QUICK).fit(np.ma.masked_array(X), y)
    with pytest.raises(ValueError, match="masked"):
        model.predict(masked)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_labels_are_counted(missing):
    labels = np.array(["no", "yes"] * 20, dtype=object)
    labels[[3, 5]] = missing
    refused("y has no label for 2 samples, such as sample 3: drop", X, labels)


@pytest.mark.parametrize("factor", [5e-324, 1e305])
def test_weights_without_a_sum(factor):
    refused("The largest sample weight is.*ratios", sample_weight=np.full(40, factor))


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_weights_that_are_too_small_for_the_inputs(store):
    tiny = np.full(40, 1e-140)
    refused("differ by .*weight is 1e-140.*no number", store(1e-100 * X), y, None, tiny)


def test_groups_of_several_types_for_a_selector():
    groups = np.array(["a", 1] * 20, dtype=object)
    refused("groups.*several types", X, y, FeatureSelector(), groups=groups)
