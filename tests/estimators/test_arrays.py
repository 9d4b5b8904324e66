"""Arrays of any type and layout give the answer of plain ones."""

import joblib
import numpy as np
import pytest
from scipy import sparse

from bisvm import BilevelLinearSVC, BilevelSVC, ConvolutionalLinearSVC
from bisvm.machines import linear
from tests.covering import crossed, full

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RNG = np.random.default_rng(0)
# Small whole numbers, which every type can hold.
X = RNG.integers(0, 9, size=(60, 4)).astype(float)
y = (X[:, 0] + X[:, 1] + RNG.normal(size=60) > 8).astype(int)
WEIGHT = RNG.integers(1, 4, size=60).astype(float)


def read_only(a):
    a = np.array(a)
    a.setflags(write=False)
    return a


def spaced(a):
    """Every second entry of a larger array, in every direction."""
    wide = np.zeros([2 * size for size in a.shape], dtype=a.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in a.shape)]
    view[...] = a
    return view


def backwards(a):
    return np.ascontiguousarray(a[::-1])[::-1]


LAYOUTS = {
    "read-only": read_only,
    "Fortran": np.asfortranarray,
    "spaced": spaced,
    "backwards": backwards,
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
}
# Every array is read at the first steps already.
ONCE = {"random_state": 0, "cv": 3, "max_iter": 3, "starts": 1}
CONVOLUTION = {"random_state": 0, "cv": 2, "max_iter": 1}
ESTIMATORS = {
    "rbf": lambda: BilevelSVC("rbf", **ONCE),
    "ard": lambda: BilevelSVC("ard", **ONCE),
    "linear": lambda: BilevelLinearSVC(**ONCE),
    "hinge": lambda: BilevelLinearSVC(loss="hinge", **ONCE),
    "convolution": lambda: ConvolutionalLinearSVC((2, 2), (1, 1), **CONVOLUTION),
}


@pytest.fixture(params=ESTIMATORS, ids=str)
def make(request):
    return ESTIMATORS[request.param]


def decisions(model, X, y, **more):
    return model.fit(X, y, **more).decision_function(X)


@pytest.mark.parametrize("make, changed", crossed(ESTIMATORS, LAYOUTS, strength=1))
def test_any_layout(make, changed):
    weight = (
        {} if isinstance(make(), ConvolutionalLinearSVC) else {"sample_weight": WEIGHT}
    )
    expected = decisions(make(), X, y, **weight)
    weight = {name: changed(value) for name, value in weight.items()}
    found = decisions(make(), changed(X), changed(y), **weight)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


TYPES = ["float16", "float32", "int8", "uint8", "int64", "bool", "object"]


@pytest.mark.parametrize("make, dtype", crossed(ESTIMATORS, TYPES, strength=1))
def test_any_type_of_numbers(make, dtype):
    given = X.astype(dtype)
    expected = decisions(make(), given.astype(float), y)
    np.testing.assert_allclose(decisions(make(), given, y), expected, rtol=1e-9)


@pytest.mark.parametrize(
    "kind, dtype, thin",
    crossed(
        ["csr", "csc", "coo"],
        ["float32", "int32", "float64"],
        {"factors": linear.THIN, "products": 0},
        strength=1,
    ),
)
def test_sparse_matrices_of_any_kind(monkeypatch, kind, dtype, thin):
    """CSC and COO become CSR; nothing is written to what was given."""
    monkeypatch.setattr(linear, "THIN", thin)
    make = ESTIMATORS["linear"]
    expected = decisions(make(), sparse.csr_array(X), y)
    given = sparse.coo_array(X.astype(dtype)).asformat(kind)
    given.data.setflags(write=False)
    np.testing.assert_allclose(decisions(make(), given, y), expected, rtol=1e-9)


def test_memory_maps_as_workers_get_them(make, tmp_path):
    """joblib hands large arrays to its workers as maps that are read-only."""
    files = {"X": X, "y": y}
    for name, array in files.items():
        joblib.dump(array, tmp_path / name)
    maps = [joblib.load(tmp_path / name, mmap_mode="r") for name in files]
    assert all(isinstance(m, np.memmap) for m in maps)
    expected = decisions(make(), X, y)
    np.testing.assert_allclose(decisions(make(), *maps), expected, rtol=1e-9)


def test_sparse_matrices_of_read_only_maps(tmp_path):
    joblib.dump(sparse.csr_array(X), tmp_path / "X")
    mapped = joblib.load(tmp_path / "X", mmap_mode="r")
    assert not mapped.data.flags.writeable
    make = ESTIMATORS["linear"]
    expected = decisions(make(), sparse.csr_array(X), y)
    np.testing.assert_allclose(decisions(make(), mapped, y), expected, rtol=1e-9)


def test_inputs_are_left_as_they_were(make):
    kept = X.copy()
    make().fit(X, y)
    np.testing.assert_array_equal(X, kept)


def test_memory_for_no_set_of_landmarks_is_refused_with_both_figures():
    with pytest.raises(MemoryError, match=r"allows 1e-06 GB.*take .* GB.*max_memory"):
        BilevelSVC("rbf", max_memory=1000, approximation="nystroem").fit(X, y)
    with pytest.raises(MemoryError, match=r"allows 1e-06 GB.*landmarks for 60 samples"):
        BilevelSVC("rbf", max_memory=1000).fit(X, y)


@pytest.mark.parametrize("backend", ["threading", *full("loky")])
def test_the_error_of_a_worker_has_its_own_words(backend):
    three = np.digitize(X[:, 0], [3, 6])
    model = BilevelSVC(
        shared=False,
        starts=[{"C": 1.0, "gamma": 0.1}, {"C": 1.0, "gama": 0.1}],
        cv=3,
        n_jobs=2,
    )
    with joblib.parallel_config(backend), pytest.raises(ValueError, match="gama"):
        model.fit(X, three)
