"""A run that is watched, limited, stopped or interrupted."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from bisvm import BilevelLinearSVC, BilevelSVC
from bisvm.datasets import make_moons_with_noise
from bisvm.losses import Quartic
from bisvm.solvers import Newton
from tests.covering import full
from tests.problems import three_classes, toy_data

pytestmark = [
    pytest.mark.filterwarnings("ignore:Tuning stopped early"),
    pytest.mark.usefixtures("brief_searches"),
]

X, y = toy_data(80)
X3, y3 = three_classes(60)


def svc(kernel="rbf", **settings):
    return BilevelSVC(kernel, **{"random_state": 0, "starts": 1, **settings})


class Watch:
    """A callback that keeps what it is told, and stops or breaks at a given number."""

    def __init__(self, stop_at=None, break_at=None):
        self.seen = []
        self.stop_at, self.break_at = stop_at, break_at

    def __call__(self, progress):
        self.seen.append(progress)
        if len(self.seen) == self.break_at:
            raise KeyboardInterrupt
        return len(self.seen) == self.stop_at


def test_the_callback_is_told_every_evaluation():
    watch = Watch()
    model = svc(callback=watch).fit(X, y)
    told = [(p.record.number, p.record.value) for p in watch.seen]
    assert told == [(record.number, record.value) for record in model.history_]
    numbers = [p.record.number for p in watch.seen]
    assert numbers == list(range(1, len(numbers) + 1))
    best = np.minimum.accumulate([p.record.value for p in watch.seen])
    np.testing.assert_array_equal([p.best_value for p in watch.seen], best)
    for progress in watch.seen:
        np.testing.assert_allclose(
            np.log(list(progress.hyperparameters.values())), progress.record.theta
        )
    seconds = [p.record.seconds for p in watch.seen]
    assert seconds == sorted(seconds)


def test_a_callback_changes_nothing():
    watched, plain = svc(callback=Watch()).fit(X, y), svc().fit(X, y)
    np.testing.assert_array_equal(
        watched.decision_function(X), plain.decision_function(X)
    )


@pytest.mark.parametrize("kernel", ["rbf", "ard", "linear"])
def test_a_callback_that_says_true_ends_the_run(kernel):
    watch = Watch(stop_at=2)
    with pytest.warns(ConvergenceWarning, match="callback"):
        model = svc(kernel, C=0.01, callback=watch).fit(X, y)
    assert len(model.history_) == 2
    assert not model.certificate_.converged
    best = min(model.history_, key=lambda record: record.value)
    assert model.criterion_value_ == best.criterion
    assert model.C_ == pytest.approx(np.exp(best.theta[0]))
    assert model.score(X, y) > 0.5


@pytest.mark.usefixtures("usual_searches")
def test_stopping_at_any_stage_leaves_a_model_and_a_warning():
    stages = {record.stage: record.number for record in svc("ard").fit(X, y).history_}
    for number in stages.values():
        with pytest.warns(ConvergenceWarning, match="callback"):
            model = svc("ard", callback=Watch(stop_at=number)).fit(X, y)
        assert len(model.history_) == number
        assert "callback" in model.certificate_.reason


def test_progress_hands_out_the_best_model_so_far():
    watch = Watch()
    final = svc(callback=watch).fit(X, y)
    for progress in watch.seen[::3]:
        model = progress.model()
        assert model.C_ == progress.best_hyperparameters["C"]
        assert model.predict(X).shape == y.shape
    np.testing.assert_allclose(
        watch.seen[-1].model().decision_function(X),
        final.decision_function(X),
        atol=1e-6,
    )


def test_a_model_may_be_asked_for_inside_the_callback():
    scores = []

    def callback(progress):
        scores.append(progress.model().score(X, y))

    svc(callback=callback).fit(X, y)
    assert max(scores) > 0.75


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("shared", [True, False])
def test_progress_models_know_all_classes(shared, multi_class):
    watch = Watch()
    svc(shared=shared, multi_class=multi_class, callback=watch).fit(X3, y3)
    model = watch.seen[-1].model()
    assert set(model.predict(X3)) == {0, 1, 2}
    assert model.score(X3, y3) > 0.7


@pytest.mark.usefixtures("usual_searches")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("shared", [True, False])
def test_an_interrupt_leaves_the_best_model_in_the_callbacks_record(shared, n_jobs):
    watch = Watch(break_at=4)
    estimator = svc(shared=shared, callback=watch, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X3, y3)
    last = watch.seen[-1]
    model = last.model()
    assert model.score(X3, y3) > 0.5
    assert last.best_hyperparameters["C"] in np.atleast_1d(model.C_)


def test_an_error_in_the_callback_is_the_users():
    def callback(progress):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        svc(callback=callback).fit(X, y)


@pytest.mark.parametrize("kernel", ["rbf", "ard", "linear"])
def test_a_time_limit_gives_the_best_model_so_far(kernel):
    with pytest.warns(ConvergenceWarning, match=r"time limit.*time_limit"):
        model = svc(kernel, time_limit=1e-9).fit(X, y)
    assert len(model.history_) == 1
    assert not model.certificate_.converged
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize(
    "settings", [{"time_limit": 1e-9}, {"callback": lambda p: True}]
)
def test_a_run_on_many_points_can_be_stopped_at_its_first_evaluation(settings):
    """With many points a subsample is tuned first."""
    many, classes = make_moons(900, noise=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="Tuning stopped early"):
        model = svc(starts="auto", **settings).fit(many, classes)
    assert model.score(many, classes) > 0.8
    assert not model.certificate_.converged


@pytest.mark.usefixtures("usual_searches")
def test_few_iterations_are_a_warning_that_says_what_to_do():
    for make in (BilevelSVC, BilevelLinearSVC):
        with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
            model = make(max_iter=1, C=1e-3, tol=1e-8, random_state=0).fit(X, y)
        assert model.predict(X).shape == y.shape


@pytest.mark.usefixtures("usual_searches")
def test_a_run_that_ends_by_itself_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel in ("rbf", "ard", "linear"):
            model = svc(kernel, starts="auto").fit(X, y)
            assert model.certificate_.converged


def test_a_lower_level_that_was_not_solved_is_not_called_converged():
    estimator = svc(solver=Newton(max_iter=1), loss=Quartic(1e-4), C=100.0, learn=())
    with pytest.warns(ConvergenceWarning):
        model = estimator.fit(X, y)
    assert model.certificate_.lower_residual > 1e-3


@pytest.mark.usefixtures("usual_searches")
@pytest.mark.parametrize("every", [60, *full(3)])
def test_a_climb_that_is_stopped_anywhere_returns_the_best_point_it_told_of(every):
    X, y = make_moons_with_noise(100, n_noise=2, random_state=0)
    settings = {"kernel": "ard", "cv": 3, "random_state": 0}
    stages = [record.stage for record in BilevelSVC(**settings).fit(X, y).history_]
    assert stages[-1] == "final descent"
    numbers = [k for k in range(1, len(stages) + 1) if stages[k - 1] != "subsample"]
    for number in numbers[::every] + numbers[-2:]:
        told = []

        def stop(progress, number=number, told=told):
            told.append(progress.best_hyperparameters)
            return progress.record.number >= number

        with pytest.warns(ConvergenceWarning):
            model = BilevelSVC(**settings, callback=stop).fit(X, y)
        for name, value in told[-1].items():
            np.testing.assert_allclose(model.hyperparameters_[name], value, rtol=1e-12)
