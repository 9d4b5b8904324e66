"""scikit-learn's own tests of SVC, run on `bisvm.SVC`.

    python -m tools.stock_tests            # counts, and what failed
    python -m tools.stock_tests --all      # those of DESELECTED, too
    python -m tools.stock_tests -k kernel  # further arguments are pytest's

The tests come with scikit-learn (`sklearn/svm/tests`). `sklearn.svm.SVC` is replaced by
`bisvm.SVC` with scikit-learn's default values, which are not tuned. A test counts if it
makes such an SVC; those of other classes do not. DESELECTED lists the tests that make
no sense here, each with its reason.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest
from sklearn import svm

import bisvm

MODULES = ("sklearn.svm.tests.test_svm", "sklearn.svm.tests.test_sparse")
# Parts of the names of tests, and why they are left out.
_PRIVATE = "reads or changes private attributes of scikit-learn's SVC"
_STEPS = "max_iter limits steps of LIBSVM"
_WORDS = "the same error in other words"
_SPARSE = "sparse rows are predicted here, whatever the machine was trained on"
_DEPRECATED = "about warnings that scikit-learn gives of its own future"
DESELECTED: dict[str, str] = {
    "-sigmoid-": "'sigmoid' is not a kernel, and is refused",
    "test_tweak_params": _PRIVATE,
    "test_gamma_scale": f"{_PRIVATE} (_gamma; here it is gamma_)",
    "test_svc_raises_error_internal_representation": _PRIVATE,
    "test_libsvm_convergence_warnings": _STEPS,
    "test_timeout": _STEPS,
    "test_negative_sample_weights_mask_all_samples": _WORDS,
    "test_negative_weights_svc_leave_just_one_label": _WORDS,
    "test_svc_nonfinite_params": _WORDS,
    "test_sparse_precomputed": _WORDS,
    "test_hasattr_predict_proba": _WORDS,
    "test_bad_input": _SPARSE,
    "test_probability_raises_futurewarning": _DEPRECATED,
    "test_svc_nusvc_probA_probB_deprecated": _DEPRECATED,
}


@dataclass(eq=False, repr=False)
class StockSVC(bisvm.SVC):
    """`bisvm.SVC` with the default values of scikit-learn."""

    made = 0

    C: Any = 1.0
    gamma: Any = "scale"
    coef0: Any = 0.0

    def __post_init__(self) -> None:
        StockSVC.made += 1


# Messages name the class.
StockSVC.__name__ = "SVC"


@dataclass(eq=False)
class Counts:
    """A plugin of pytest that counts the tests that make an SVC."""

    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    everything: bool = False
    left_out: list[str] = field(default_factory=list)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self.everything:
            return
        self.left_out = [one.nodeid for one in items if _reason(one.nodeid)]
        items[:] = [one for one in items if not _reason(one.nodeid)]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        result = yield
        report = result.get_result()
        if call.when == "setup":
            StockSVC.made = 0
        if call.when == "call" and StockSVC.made and report.outcome != "skipped":
            counted = self.passed if report.passed else self.failed
            counted.append(item.nodeid)


def _reason(name: str) -> str | None:
    """Why a test is left out."""
    return next((why for part, why in DESELECTED.items() if part in name), None)


def run(arguments: list[str], everything: bool = False) -> Counts:
    """Run the tests with SVC replaced."""
    counts, stock = Counts(everything=everything), svm.SVC
    svm.SVC = StockSVC
    try:
        options = ["-q", "--tb=line", "-p", "no:cacheprovider", "-W", "ignore"]
        ended = pytest.main(
            [*options, *arguments, "--pyargs", *MODULES], plugins=[counts]
        )
    finally:
        svm.SVC = stock
    if ended not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with {ended!r}.")
    return counts


def main() -> int:
    """Run the tests and print the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="those left out, too")
    given, others = parser.parse_known_args()
    counts = run(others, given.all)
    n = len(counts.passed) + len(counts.failed)
    print(f"\nTests that make an SVC: {n}, of which {len(counts.passed)} pass.")
    left_out = len(counts.left_out)
    print(f"Left out, some of them tests of other classes: {left_out}.")
    for part, why in DESELECTED.items():
        print(f"  {part}: {why}")
    return int(bool(counts.failed))


if __name__ == "__main__":
    sys.exit(main())
