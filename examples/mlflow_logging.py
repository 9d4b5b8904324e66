"""
Log a fit to MLflow, and stop when it no longer gains
=====================================================

`callback=` takes any function of a `bisvm.search.history.Progress`. Without MLflow
installed a stand-in prints what would be logged; any other tracker is called in the
same places.
"""

import warnings

from sklearn.exceptions import ConvergenceWarning

from bisvm import BilevelSVC
from bisvm.datasets import make_moons_with_noise

try:
    import mlflow
except ImportError:
    from contextlib import nullcontext
    from types import SimpleNamespace

    mlflow = SimpleNamespace(
        start_run=nullcontext,
        log_params=lambda values: print("params ", values),
        log_metrics=lambda values, step: print(f"step {step:3d}", values),
    )


class ToMLflow:
    """One step of MLflow for every evaluation."""

    def __call__(self, progress):
        metrics = {"loss": progress.record.value, "best_loss": progress.best_value}
        metrics["seconds"] = progress.record.seconds
        for name, value in progress.hyperparameters.items():
            if isinstance(value, float):  # arrays: one number a feature
                metrics[name] = value
        metrics = {name: round(value, 4) for name, value in metrics.items()}
        mlflow.log_metrics(metrics, step=progress.record.number)


class Patience:
    """Stop after some evaluations without a gain worth having."""

    def __init__(self, evaluations, gain):
        self.evaluations, self.gain = evaluations, gain
        self.best, self.since = float("inf"), 0

    def __call__(self, progress):
        gained = progress.best_value < (1.0 - self.gain) * self.best
        self.since = 0 if gained else self.since + 1
        self.best = min(self.best, progress.best_value)
        return self.since >= self.evaluations


def both(*callbacks):
    return lambda progress: any([callback(progress) for callback in callbacks])


X, y = make_moons_with_noise(200, random_state=0)
model = BilevelSVC(
    "rbf",
    random_state=0,
    callback=both(ToMLflow(), Patience(evaluations=3, gain=0.01)),
)
with mlflow.start_run(), warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # it says that it was stopped
    model.fit(X, y)
    mlflow.log_params({"C": round(model.C_, 4), "kernel": str(model.kernel_)[:100]})
print(f"stopped after {model.n_iter_} evaluations: {model.certificate_.reason}")
