"""What to do about a search that did not converge, in arguments of the estimator."""

from __future__ import annotations

from dataclasses import replace

from bisvm.kernels import RBF, Kernel
from bisvm.search.history import Certificate
from bisvm.search.reasons import ASKED, GO_ON, PERHAPS_A_KINK, Reason
from bisvm.search.settings import Settings

# Bounds that one sentence lists.
_FEW = 3
# Arguments of `bisvm.SVC` that have other names than what is learned.
_ARGUMENT = {"offset": "coef0"}
# Of `bisvm.SVC`, which has none of the arguments that other estimators name here.
_OF_DROP_IN = {
    GO_ON: "BilevelSVC can search longer: it has max_iter, time_limit and tol.",
    PERHAPS_A_KINK: (
        "It may be a kink of the validation loss, and the best there is; BilevelSVC "
        "with other starts would tell."
    ),
}


def with_advice(
    certificate: Certificate, settings: Settings, *, drop_in: bool = False
) -> Certificate:
    """Return a certificate whose advice names arguments that the estimator has.

    Parameters
    ----------
    settings : of the search, with the kernel that was chosen
    drop_in : whether the search is that of `bisvm.SVC`
    """
    remedy = _against_rules(settings, drop_in)
    beyond = _beyond_bounds(certificate.at_bounds, settings, drop_in)
    found, why = replace(certificate, remedy=remedy, beyond=beyond), certificate.why
    if certificate.doubt == why and found.doubt is not None:
        return replace(found, why=found.doubt)
    if drop_in and why not in ASKED and why.advice in _OF_DROP_IN:
        return replace(found, why=Reason(why.sentence, _OF_DROP_IN[why.advice]))
    return found


def _against_rules(settings: Settings, drop_in: bool) -> str:
    """What to do if simple rules predict better."""
    if settings.pairwise:
        return "Compute the kernel from standardised features, or use another one."
    standardise = (
        "Standardise the features, for example with "
        "sklearn.preprocessing.StandardScaler"
    )
    if drop_in:
        return f"{standardise}, or use BilevelSVC, which has more kernels."
    if settings.arguments.get("kernel") == "auto":
        return f"{standardise}."
    if settings.estimator.startswith("BilevelLinear"):
        other = settings.estimator.replace("Linear", "")
        return f"{standardise}, or use {other}, which has kernels."
    kernel = settings.model.kernel
    if isinstance(kernel, RBF) and not kernel.per_feature:
        return f"{standardise}, or use kernel='ard', one width per feature."
    return f"{standardise}, or use kernel='auto', which tries several."


def _beyond_bounds(
    at_bounds: tuple[str, ...], settings: Settings, drop_in: bool
) -> str:
    """Which bounds the search ended at, and which arguments widen them."""
    said = [where for where in at_bounds if not _is_useless_feature(where)]
    if not said:
        return ""
    more = [f"and {len(said) - _FEW} more"] if len(said) > _FEW else []
    where = "; ".join([*said[:_FEW], *more])
    names = dict.fromkeys(_parameter(one) for one in said)
    if drop_in:
        own = " and ".join(_ARGUMENT.get(name, name) for name in names)
        return (
            f"The search ended with {where}. Give {own} a value yourself, or use "
            "BilevelSVC, whose bounds can be widened."
        )
    ways = dict.fromkeys(_widened(name, settings) for name in names)
    return (
        f"The search ended with {where}. Lower losses may lie beyond: to look there, "
        f"widen the bounds, {' and '.join(ways)}."
    )


def _is_useless_feature(where: str) -> bool:
    """Whether one of several values is at its lower bound: nothing is beyond it."""
    return "[" in where and " lower bound" in where


def _parameter(where: str) -> str:
    """The hyperparameter of "gamma[3] at its upper bound, 10"."""
    return where.partition(" at its ")[0].partition("[")[0]


def _widened(name: str, settings: Settings) -> str:
    """The argument that widens the bounds of a hyperparameter."""
    if name == "C":
        kind = type(settings.model.regularization).__name__
        return (
            f"regularization={kind}(C_bounds=(low, high)) from "
            "bisvm.machines.regularization"
        )
    kernel = settings.model.kernel
    if name == "gamma" and hasattr(kernel, "gamma_bounds"):
        return f"kernel={_written(kernel)} from bisvm.kernels"
    if name.endswith("gamma"):
        return f"gamma_bounds of the part of the kernel that has {name}"
    return f"those of {name}, where they can be given"


def _written(kernel: Kernel) -> str:
    own = "per_feature=True, " if getattr(kernel, "per_feature", False) else ""
    return f"{type(kernel).__name__}({own}gamma_bounds=(low, high))"
