"""scikit-learn's callbacks (1.9): `estimator.set_callbacks(ProgressBar())`.

A fit is a task, and every evaluation of the upper level one of its subtasks, whose
number is not known beforehand. A callback that returns True at the end of an evaluation
stops the run, as one of ours does. Before scikit-learn 1.9 there is no `set_callbacks`,
and nothing of this happens.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

from bisvm.search.history import Progress

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # pragma: no cover

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """scikit-learn has no callbacks before 1.9."""

    def with_callbacks(method: Any) -> Any:
        return method


__all__ = ["CallbackSupportMixin", "Watched", "with_callbacks"]


class Watched:
    """One fit, as callbacks of both kinds see it.

    Attributes
    ----------
    callback : what is told of every evaluation, ours and scikit-learn's; None if there
        is nobody to tell
    """

    callback: Callable[[Progress], Any] | None

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any):
        self._estimator, self._lock = estimator, Lock()
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"X": X, "y": y, "metadata": given}
        self._context: Any = None
        self.callback = estimator.callback
        begin = getattr(estimator, "_init_callback_context", None)
        if begin is not None:
            self._context = begin(max_subtasks=None)
            self._context.call_on_fit_task_begin(estimator=estimator, **self._data)
        if getattr(estimator, "_skl_callbacks", None):
            self.callback = self._tell

    def end(self) -> None:
        """The estimator is fitted."""
        if self._context is not None:
            self._context.call_on_fit_task_end(
                estimator=self._estimator,
                **self._data,
                reconstruction_attributes=lambda: _fitted(self._estimator),
            )

    def _tell(self, progress: Progress) -> bool:
        own = self._estimator.callback
        stop = own is not None and bool(own(progress))
        # Numbers of subtasks are given in turn, and sets may be tuned in threads.
        with self._lock:
            task = self._context.subcontext(task_name="evaluation")
            task.call_on_fit_task_begin(estimator=self._estimator, **self._data)
            asked = task.call_on_fit_task_end(
                estimator=self._estimator,
                **self._data,
                reconstruction_attributes=lambda: _fitted(progress.model()),
            )
        return stop or bool(asked)

    def __deepcopy__(self, memo: Any) -> Watched:
        # Clones of an estimator tell the same people.
        return self


def _fitted(model: Any) -> dict[str, Any]:
    """All that a fit has set, by which a copy of the estimator predicts."""
    settings = {*model.get_params(deep=False), "_skl_callbacks", "_callback_fit_ctx"}
    return {name: one for name, one in vars(model).items() if name not in settings}
