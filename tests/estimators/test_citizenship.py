"""A citizen of scikit-learn: what its users do with an estimator works with ours."""

import io
import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bisvm import BilevelLinearSVC, BilevelSVC
from tests.covering import full
from tests.problems import three_classes, toy_data

X, y = toy_data(60)
X3, y3 = three_classes(60)
# The tests are about the interface, not about what is learned.
QUICK = {"cv": 2, "random_state": 0, "starts": 1, "max_iter": 5}
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]


@pytest.fixture(params=[BilevelSVC, BilevelLinearSVC])
def machine(request):
    return request.param(**QUICK)


@pytest.fixture
def frame():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    columns = {"a": X[:, 0], "b": X[:, 2]}
    return pandas.DataFrame({**columns, "colour": rng.choice(list("rgb"), len(X))})


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# --- compositions ---------------------------------------------------------------------


def columns():
    return make_column_transformer(
        (StandardScaler(), ["a", "b"]),
        (OneHotEncoder(sparse_output=False), ["colour"]),
    )


def test_a_column_transformer_in_a_pipeline(machine, frame):
    labels = np.array(["no", "yes"])[y]
    model = make_pipeline(columns(), machine).fit(frame, labels)
    assert model[-1].n_features_in_ == 5
    assert set(model.predict(frame)) == {"no", "yes"}
    assert model.score(frame, labels) > 0.5
    assert list(clone(model).fit(frame, labels).classes_) == ["no", "yes"]


def test_frames_between_the_steps(machine, frame):
    model = make_pipeline(columns(), machine).set_output(transform="pandas")
    plain = make_pipeline(columns(), clone(machine)).fit(frame, y)
    model.fit(frame, y)
    assert model[-1].feature_names_in_[0] == "standardscaler__a"
    np.testing.assert_array_equal(model.predict(frame), plain.predict(frame))


def test_cross_validation(machine):
    found = cross_validate(
        machine,
        X3,
        y3,
        cv=3,
        scoring=["accuracy", "balanced_accuracy", "f1_macro"],
        return_estimator=True,
        return_train_score=True,
        error_score="raise",
    )
    assert found["test_accuracy"].mean() > 0.5
    assert all(hasattr(one, "C_") for one in found["estimator"])


@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_predictions_of_a_cross_validation(machine, method):
    found = cross_val_predict(machine, X3, y3, cv=3, method=method)
    assert len(found) == len(y3) and found.ndim == (1 if method == "predict" else 2)


@pytest.mark.parametrize("how", ["sigmoid", *full("isotonic")])
@pytest.mark.parametrize("data", [(X, y), (X3, y3)], ids=["two", "three"])
def test_calibration_gives_probabilities(machine, how, data):
    model = CalibratedClassifierCV(machine, method=how, cv=3).fit(*data)
    shares = model.predict_proba(data[0])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert model.score(*data) > 0.6
    assert -get_scorer("neg_log_loss")(model, *data) < np.log(len(model.classes_)) + 0.5


def test_areas_under_curves_need_decision_values_only(machine):
    model = machine.fit(X, y)
    assert get_scorer("roc_auc")(model, X, y) > 0.5


# --- metadata -------------------------------------------------------------------------


class Recording(BilevelSVC):
    """Keeps what fit was given."""

    def fit(self, X, y, sample_weight=None, groups=None, sample_groups=None):
        self.given_ = {"sample_weight": sample_weight, "groups": groups}
        return super().fit(X, y, sample_weight=sample_weight, groups=groups)


WEIGHT = np.linspace(0.5, 2.0, len(y))
GROUPS = np.arange(len(y)) // 6


def plain_scaler():
    """The scaler takes weights too, if it is let."""
    return StandardScaler().set_fit_request(sample_weight=False)


def test_weights_are_routed_through_a_cross_validation(routing):
    machine = Recording(**QUICK).set_fit_request(sample_weight=True)
    machine.set_score_request(sample_weight=False)
    found = cross_validate(
        machine, X, y, cv=3, params={"sample_weight": WEIGHT}, return_estimator=True
    )
    for one in found["estimator"]:
        assert set(one.given_["sample_weight"]) < set(WEIGHT)
        assert len(one.given_["sample_weight"]) == 40


def test_weights_and_groups_are_routed_through_pipeline_and_search(routing):
    machine = Recording(**{**QUICK, "cv": GroupKFold(2)})
    machine.set_fit_request(sample_weight=True, groups=True)
    # The default scorer of a pipeline takes no requests in older versions.
    scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
    search = GridSearchCV(
        make_pipeline(plain_scaler(), machine),
        {"recording__C": [0.1, 1.0]},
        cv=GroupKFold(3),
        scoring=scorer,
    )
    search.fit(X, y, sample_weight=WEIGHT, groups=GROUPS)
    given = search.best_estimator_[-1].given_
    np.testing.assert_array_equal(given["sample_weight"], WEIGHT)
    np.testing.assert_array_equal(given["groups"], GROUPS)


def test_weights_that_nobody_asked_for_are_an_error(routing, machine):
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="set_fit"):
        cross_validate(
            machine, X, y, cv=3, params={"sample_weight": WEIGHT}, error_score="raise"
        )


def test_both_machines_take_requests(routing, machine):
    machine.set_fit_request(sample_weight=True, groups=True)
    model = make_pipeline(plain_scaler(), machine)
    model.fit(X, y, sample_weight=WEIGHT, groups=GROUPS)
    alone = clone(machine).fit(
        StandardScaler().fit_transform(X), y, sample_weight=WEIGHT, groups=GROUPS
    )
    np.testing.assert_array_equal(model[-1].C_, alone.C_)


# --- representations, copies, configuration -------------------------------------------


def test_the_page_that_notebooks_show(machine):
    before = machine._repr_html_()
    assert type(machine).__name__ in before and "fitted" in before
    assert "<script>alert" not in machine.set_params(solver="newton")._repr_html_()
    after = make_pipeline(StandardScaler(), machine).fit(X, y)._repr_html_()
    assert type(machine).__name__ in after
    assert "random_state" in after
    assert "random_state=0" in repr(machine)
    assert "_repr_html_" in dir(machine) and "cv=2" in str(machine)


@pytest.mark.parametrize("way", ["pickle", "joblib", "copy"])
def test_copies_are_the_same_model(machine, way):
    model = machine.fit(X3, y3)
    if way == "pickle":
        again = pickle.loads(pickle.dumps(model))
    elif way == "joblib":
        stream = io.BytesIO()
        joblib.dump(model, stream)
        again = joblib.load(io.BytesIO(stream.getvalue()))
    else:
        import copy

        again = copy.deepcopy(model)
    np.testing.assert_array_equal(
        again.decision_function(X3), model.decision_function(X3)
    )
    assert again.certificate_ == model.certificate_
    assert again.get_params()["cv"] == 2


def test_a_clone_knows_nothing(machine):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        clone(machine.fit(X, y)).predict(X)


def test_many_threads_get_the_same_answers(machine):
    model = machine.fit(X3, y3)
    expected = model.decision_function(X3), model.predict(X3)
    parts = [np.arange(k, len(X3), 1 + k % 5) for k in range(40)]

    def ask(rows):
        return model.decision_function(X3[rows]), model.predict(X3[rows])

    with ThreadPoolExecutor(8) as pool:
        for rows, (values, classes) in zip(parts, pool.map(ask, parts), strict=True):
            np.testing.assert_allclose(values, expected[0][rows], rtol=1e-9, atol=1e-12)
            np.testing.assert_array_equal(classes, expected[1][rows])
    with ThreadPoolExecutor(8) as pool:
        whole = list(pool.map(lambda _: model.decision_function(X3), range(40)))
    assert all(np.array_equal(one, expected[0]) for one in whole)


def test_assume_finite_is_respected(machine, monkeypatch):
    model = machine.fit(X, y)
    holed = X.copy()
    holed[3, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict(holed)
    with sklearn.config_context(assume_finite=True):
        values = model.decision_function(holed)
    assert np.isfinite(values[:3]).all() and np.isfinite(values[4:]).all()


# --- data frames ----------------------------------------------------------------------


def test_names_of_features_are_checked(machine, frame):
    numbers = frame[["a", "b"]]
    model = machine.fit(numbers, y)
    assert list(model.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(numbers[["b", "a"]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(numbers.rename(columns={"a": "c"}))
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(numbers.to_numpy())


def test_polars(machine):
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"a": X[:, 0], "b": X[:, 2]})
    labels = polars.Series("y", np.array(["no", "yes"])[y])
    model = machine.fit(table, labels)
    assert list(model.feature_names_in_) == ["a", "b"]
    plain = clone(machine).fit(X[:, [0, 2]], labels.to_numpy())
    np.testing.assert_array_equal(model.predict(table), plain.predict(X[:, [0, 2]]))
    assert accuracy_score(labels, model.predict(table)) > 0.5
    assert cross_validate(machine, table, labels, cv=2)["test_score"].min() > 0.3
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table.select("b", "a"))


def test_polars_in_pipelines_that_give_polars(machine):
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"a": X[:, 0], "b": X[:, 2]})
    model = make_pipeline(StandardScaler(), machine).set_output(transform="polars")
    assert list(model.fit(table, y)[-1].feature_names_in_) == ["a", "b"]


def test_weights_and_groups_of_data_frames(machine, frame):
    import pandas

    weight, groups = pandas.Series(WEIGHT), pandas.Series(GROUPS).map(str)
    one = clone(machine).fit(frame[["a", "b"]], pandas.Series(y), weight, groups)
    other = clone(machine).fit(X[:, [0, 2]], y, WEIGHT, GROUPS.astype(str))
    assert np.array_equal(one.C_, other.C_)
