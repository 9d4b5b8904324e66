"""scikit-learn's callbacks (1.9): `estimator.set_callbacks(ProgressBar())`.

A fit is a task, and every evaluation of H one of its subtasks, whose number is not
known beforehand. A callback that returns True at the end of an evaluation stops the
fit, as the argument `callback` does. Before scikit-learn 1.9 there is no
`set_callbacks`.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, TypeVar

from bisvm.core.types import UserData, UserVector
from bisvm.estimators.arguments import Callback, SearchArguments
from bisvm.search.history import Progress

Method = TypeVar("Method")

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # pragma: no cover

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """scikit-learn has no callbacks before 1.9."""

    def with_callbacks(method: Method) -> Method:
        return method


__all__ = ["CallbackSupportMixin", "Watched", "with_callbacks"]


class Watched:
    """One fit as seen by its callbacks: our `callback`, and those of scikit-learn.

    Attributes
    ----------
    callback : callable or None
        Passes every evaluation on to `callback` and to scikit-learn's callbacks; None
        if there are none.
    """

    callback: Callback | None

    def __init__(
        self,
        estimator: SearchArguments,
        X: UserData,
        y: UserVector,
        sample_weight: UserVector,
    ):
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
        """Tell the callbacks that the estimator is fitted."""
        if self._context is not None:
            self._context.call_on_fit_task_end(
                estimator=self._estimator,
                **self._data,
                reconstruction_attributes=lambda: fitted_state(self._estimator),
            )

    def _tell(self, progress: Progress) -> bool:
        own = self._estimator.callback
        stop = own is not None and bool(own(progress))
        # Subtasks are numbered in turn, and classes may be tuned in several threads.
        with self._lock:
            task = self._context.subcontext(task_name="evaluation")
            task.call_on_fit_task_begin(estimator=self._estimator, **self._data)
            asked = task.call_on_fit_task_end(
                estimator=self._estimator,
                **self._data,
                reconstruction_attributes=lambda: fitted_state(progress.model()),
            )
        return stop or bool(asked)

    def __deepcopy__(self, memo: object) -> Watched:
        # A clone of the estimator has the same callbacks.
        return self


def fitted_state(model: SearchArguments) -> dict[str, Any]:
    """All that a fit has set, by which a copy of the estimator predicts."""
    settings = {*model.get_params(deep=False), "_skl_callbacks", "_callback_fit_ctx"}
    return {name: one for name, one in vars(model).items() if name not in settings}
