"""The mean of machines that were tuned on splits drawn anew."""

from threading import Lock

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.model_selection import KFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bisvm
from bisvm import BilevelLinearSVC, BilevelSVC, Chunks, SwapHoldout
from bisvm.datasets import make_moons_with_noise

X, Y = make_moons_with_noise(120, n_noise=2, random_state=0)
FLOWERS, KINDS = load_iris(return_X_y=True)
FLOWERS, KINDS = FLOWERS[::3], KINDS[::3]
QUICK = dict(cv=3, max_iter=2, starts=1, random_state=0)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CASES = {
    "kernel": (BilevelSVC(**QUICK), X, Y),
    "linear": (BilevelLinearSVC(**QUICK), X, Y),
    "linear kernel": (BilevelSVC("linear", **QUICK), X, Y),
    "classes": (BilevelSVC("ard", multi_class="ovr", **QUICK), FLOWERS, KINDS),
    "pairs": (BilevelSVC(multi_class="ovo", **QUICK), FLOWERS, KINDS),
    "each class its own": (
        BilevelSVC(shared=False, multi_class="ovr", **QUICK),
        FLOWERS,
        KINDS,
    ),
    "sparse": (BilevelSVC(**QUICK), sparse.csr_array(X), Y),
    "precomputed": (BilevelSVC("precomputed", **QUICK), X @ X.T, Y),
}


@pytest.mark.parametrize("name", CASES)
def test_the_decision_is_the_mean_of_the_members_scores(name):
    single, inputs, labels = CASES[name]
    model = clone(single).set_params(ensemble=3).fit(inputs, labels)
    assert len(model.estimators_) == 3
    scores = [member._scores(inputs) for member in model.estimators_]
    np.testing.assert_allclose(model._scores(inputs), np.mean(scores, axis=0))
    if name != "pairs":
        of_members = [m.decision_function(inputs) for m in model.estimators_]
        np.testing.assert_allclose(
            model.decision_function(inputs), np.mean(of_members, axis=0)
        )
    assert model.score(inputs, labels) > 0.7
    # The first member is what there would be without the others.
    single.fit(inputs, labels)
    first = model.estimators_[0]
    assert np.array_equal(first._scores(inputs), single._scores(inputs))
    assert np.array_equal(model.C_, single.C_) and single.estimators_ is None
    assert len({float(np.max(m.C_)) for m in model.estimators_}) == 3


def test_what_is_told_of_an_ensemble():
    model = BilevelSVC("ard", ensemble=2, **QUICK).fit(X, Y)
    members = model.estimators_
    assert not hasattr(model, "support_vectors_") and not hasattr(model, "intercept_")
    assert model.hyperparameters_ is members[0].hyperparameters_
    np.testing.assert_allclose(
        model.relevance_, np.mean([one.relevance_ for one in members], axis=0)
    )
    assert model.n_svm_evaluations_ == sum(one.n_svm_evaluations_ for one in members)
    assert model.certificate_ == [one.certificate_ for one in members]
    values = [one.expected_score_.value for one in members]
    assert model.expected_score_.value == pytest.approx(np.mean(values))
    # A later fit leaves nothing of the ensemble, nor the other way round.
    model.set_params(ensemble=False).fit(X, Y)
    assert model.estimators_ is None and len(model.support_vectors_)
    model.set_params(ensemble=2).fit(X, Y)
    assert not hasattr(model, "dual_coef_")


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_thresholds_are_means_over_members(kernel):
    """What was taken off is told, and it is what `best_threshold` would have said."""
    X, y = make_classification(150, 5, weights=[0.75], class_sep=0.6, random_state=1)
    settings = {**QUICK, "kernel": kernel, "ensemble": 3}
    plain = BilevelSVC(**settings).fit(X, y)
    moved = BilevelSVC(**settings, threshold="f1").fit(X, y)
    assert moved.threshold_ != moved.estimators_[0].threshold_
    assert plain.threshold_ == 0.0 and moved.best_threshold("f1") == 0.0
    assert plain.best_threshold("f1") == pytest.approx(moved.threshold_)
    np.testing.assert_allclose(
        moved.decision_function(X), plain.decision_function(X) - moved.threshold_
    )


def test_true_is_five_members_and_one_is_none():
    assert len(BilevelLinearSVC(ensemble=True, **QUICK).fit(X, Y).estimators_) == 5
    assert BilevelLinearSVC(ensemble=1, **QUICK).fit(X, Y).estimators_ is None


def test_threads_change_nothing():
    one = BilevelSVC(ensemble=3, **QUICK).fit(X, Y)
    other = BilevelSVC(ensemble=3, n_jobs=2, **QUICK).fit(X, Y)
    assert np.array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize(
    "cv",
    [SwapHoldout(n_partitions=3), StratifiedShuffleSplit(2, random_state=0)],
    ids=["swaps", "splitter"],
)
def test_splitters_are_drawn_anew(cv):
    model = BilevelSVC(ensemble=2, **{**QUICK, "cv": cv}).fit(X, Y)
    first, second = model.estimators_
    assert first.C_ != second.C_
    assert model.cv is cv and getattr(cv, "random_state", None) in (None, 0)


@pytest.mark.parametrize("given", [0, -1, 2.5, "yes", None])
def test_members_are_counted(given):
    with pytest.raises(ValueError, match="'ensemble' parameter.*an int in the range"):
        BilevelSVC(ensemble=given, **QUICK).fit(X, Y)


@pytest.mark.parametrize(
    "cv", [KFold(3), [(np.arange(60), np.arange(60, 120))]], ids=["folds", "pairs"]
)
def test_splits_that_cannot_be_drawn_anew_are_refused(cv):
    with pytest.raises(ValueError, match="draws new splits"):
        BilevelSVC(ensemble=2, cv=cv).fit(X, Y)


def test_a_criterion_without_splits_is_refused():
    with pytest.raises(ValueError, match="holds no points out"):
        BilevelSVC(ensemble=2, criterion="structural_risk").fit(X, Y)


def test_scikit_learns_callbacks_are_refused():
    callback = pytest.importorskip("sklearn.callback")
    model = BilevelSVC(ensemble=2, **QUICK).set_callbacks(callback.ProgressBar())
    with pytest.raises(ValueError, match="watch one fit"):
        model.fit(X, Y)


def test_a_callback_hears_all_members_and_stops_them():
    heard = []
    model = BilevelSVC(ensemble=2, callback=heard.append, **QUICK).fit(X, Y)
    assert len(heard) == sum(len(one.history_) for one in model.estimators_)
    assert model.estimators_[1].callback is model.callback
    model.set_params(callback=lambda progress: True).fit(X, Y)
    assert len(model.estimators_) == 1
    assert model.score(X, Y) > 0.5


def test_a_callback_needs_no_copy():
    lock, seen = Lock(), []

    class Watcher:
        def tell(self, progress):
            with self.lock:
                seen.append(progress.record.number)

    watcher = Watcher()
    watcher.lock = lock
    BilevelSVC(ensemble=2, callback=watcher.tell, **QUICK).fit(X, Y)
    assert seen.count(1) == 2


def test_a_time_limit_is_shared():
    model = BilevelSVC(ensemble=4, time_limit=8.0, **QUICK).fit(X, Y)
    assert [one.time_limit for one in model.estimators_] == [2.0] * 4


def test_checkpoints_have_a_file_for_each_member(tmp_path):
    path = tmp_path / "run.jsonl"
    model = BilevelSVC(ensemble=2, checkpoint=path, **QUICK).fit(X, Y)
    assert path.exists() and (tmp_path / "run.jsonl.1").exists()
    again = clone(model).fit(X, Y)
    assert np.array_equal(again.decision_function(X), model.decision_function(X))


def test_chunks_are_read_by_one_member_after_the_other():
    data = Chunks.of(X, Y, rows=50)
    model = BilevelLinearSVC(ensemble=2, n_jobs=2, **QUICK).fit(data)
    held = BilevelLinearSVC(ensemble=2, **QUICK).fit(X, Y)
    np.testing.assert_allclose(model.coef_, held.coef_, rtol=1e-4, atol=1e-6)


# --- files, ONNX, scikit-learn, reports -----------------------------------------------


@pytest.mark.parametrize("name", ["kernel", "linear", "classes", "sparse"])
def test_files_hold_all_members(name, tmp_path):
    pytest.importorskip("skops")
    single, inputs, labels = CASES[name]
    model = clone(single).set_params(ensemble=2).fit(inputs, labels)
    again = bisvm.load(bisvm.save(model, tmp_path / "model.skops"))
    assert np.array_equal(
        again.decision_function(inputs), model.decision_function(inputs)
    )


def test_damaged_members_are_refused(tmp_path):
    pytest.importorskip("skops")
    model = BilevelSVC(ensemble=2, **QUICK).fit(X, Y)
    members, path = model.estimators_, tmp_path / "model.skops"
    nested = clone(model).fit(X, Y)
    for bad in ([], [members[0], StandardScaler()], [members[0], nested]):
        model.estimators_ = bad
        with pytest.raises(ValueError, match="damaged"):
            bisvm.load(bisvm.save(model, path))
        model.estimators_ = members
    members[1].support_vectors_ = members[1].support_vectors_[:, :1]
    with pytest.raises(ValueError, match="support_vectors_ has shape"):
        bisvm.load(bisvm.save(model, path))


@pytest.mark.parametrize("name", ["kernel", "linear", "classes", "pairs"])
def test_onnx_has_the_mean(name):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    single, inputs, labels = CASES[name]
    model = clone(single).set_params(ensemble=2).fit(inputs, labels)
    written = bisvm.to_onnx(model)
    session = runtime.InferenceSession(written.SerializeToString())
    label, scores, p = session.run(None, {"X": inputs})
    np.testing.assert_allclose(p, model.predict_proba(inputs), atol=1e-9)
    np.testing.assert_allclose(scores, model.decision_function(inputs), atol=1e-9)
    assert np.array_equal(label, model.predict(inputs))


def test_scikit_learn_has_no_such_mean():
    model = BilevelSVC(ensemble=2, **QUICK).fit(X, Y)
    with pytest.raises(ValueError, match="mean of several machines"):
        model.to_sklearn()
    assert model.estimators_[0].to_sklearn().fit(X, Y).score(X, Y) > 0.7


def test_reports_say_how_many_there_are(tmp_path):
    model = make_pipeline(StandardScaler(), BilevelSVC(ensemble=2, **QUICK)).fit(X, Y)
    path = bisvm.report(model, X, Y, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert path is not None
    assert "each tuned on its own folds" in text
    assert "The same machine, without a search" not in text
