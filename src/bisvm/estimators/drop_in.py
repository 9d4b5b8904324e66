"""Arguments of scikit-learn's SVC that are missing here, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable

# For each argument of SVC and LinearSVC that is missing here, what to write instead.
INSTEAD = {
    "gamma": "gamma is learned. Write kernel=RBF(gamma=0.1) (from bisvm.kernels) for a "
    "start, and learn=('C',) to hold it there",
    "degree": "write kernel=Polynomial(3) (from bisvm.kernels)",
    "coef0": "it is learned, as the offset of kernel=Polynomial(3) (from "
    "bisvm.kernels)",
    "probability": "leave it out: predict_proba is always there, calibrated on "
    "held-out rows",
    "decision_function_shape": "leave it out: decision_function has one column for "
    "every class; multi_class='ovo' or 'ovr' says how the machines are trained",
    "break_ties": "leave it out: the class of the highest decision value is predicted",
    "shrinking": "leave it out",
    "cache_size": "leave it out; max_memory limits the memory of a fit",
    "penalty": "leave it out: the penalty is the squared norm",
    "dual": "leave it out",
    "intercept_scaling": "write fit_intercept='penalized' for an intercept with a "
    "penalty",
}
# Kernels of SVC that are missing here, and why.
SIGMOID = (
    "kernel='sigmoid' is not a kernel: its Gram matrix has negative eigenvalues, and "
    "the machine has no unique solution. Write kernel='rbf', or 'poly'."
)
CALLABLE = (
    "kernel is a function, and its derivatives are not known. Write "
    "kernel='precomputed' and fit(function(X, X), y), which learns C; or a Kernel of "
    "your own, which also learns its parameters (docs/extending/kernel.md); or use "
    "bisvm.SVC, which takes functions."
)


def check_arguments(estimator: str, given: Iterable[str]) -> None:
    """Refuse arguments of scikit-learn's SVC with what to write instead."""
    for name in given:
        if name in INSTEAD:
            raise TypeError(
                f"{estimator} has no argument {name!r}: {INSTEAD[name]}. bisvm.SVC "
                "takes all arguments of scikit-learn's SVC."
            )


def check_kernel_name(kernel: object) -> None:
    """Refuse the name "sigmoid", which is not a kernel."""
    if isinstance(kernel, str) and kernel == "sigmoid":
        raise ValueError(SIGMOID)


def check_kernel_argument(kernel: object) -> None:
    """Refuse kernels that only SVC takes."""
    check_kernel_name(kernel)
    if callable(kernel) and not isinstance(kernel, type):
        raise TypeError(CALLABLE)
