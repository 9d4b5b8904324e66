"""Models in files: bit for bit, and without running any code."""

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import bisvm
from bisvm import (
    BilevelLinearSVC,
    BilevelSVC,
    ConvolutionalLinearSVC,
    ConvolutionalSVC,
    SwapHoldout,
)
from bisvm.hinge import IncrementalSVC
from bisvm.kernels import KERNELS, RBF, Kernel, Linear
from bisvm.losses import Quartic
from bisvm.published import RPROP
from bisvm.transforms import Projection
from tests.disks import full_disk

pytest.importorskip("skops")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = load_iris(return_X_y=True)
X, Y = X[::3], Y[::3]
NAMES = np.array(["setosa", "versicolor", "virginica"])
QUICK = dict(cv=3, max_iter=2, starts=1, random_state=0)

MODELS = {
    **{name: (BilevelSVC(name, **QUICK), X, Y) for name in KERNELS},
    "text labels": (BilevelSVC(**QUICK), X, NAMES[Y]),
    "each class its own": (BilevelSVC("rbf", shared=False, **QUICK), X, Y),
    "pairs of classes": (BilevelSVC("rbf", multi_class="ovo", **QUICK), X, Y),
    "sparse": (BilevelSVC(**QUICK), sparse.csr_array(X), Y),
    "precomputed": (BilevelSVC("precomputed", **QUICK), X @ X.T, Y),
    "nested": (
        BilevelSVC(
            RBF().on([0, 1]) * Linear() + RBF() @ Projection(n_components=2), **QUICK
        ),
        X,
        Y,
    ),
    "parts": (
        BilevelSVC(
            **{**QUICK, "cv": StratifiedKFold(3)},
            loss=Quartic(eps=0.25),
            optimizer=RPROP(max_iter=2),
            class_weight="learn",
        ),
        X,
        Y == 1,
    ),
    "swaps": (BilevelSVC(**{**QUICK, "cv": SwapHoldout()}), X, Y == 1),
    "linear machine": (BilevelLinearSVC(regularization="per_feature", **QUICK), X, Y),
    "filters": (
        ConvolutionalLinearSVC((2, 2), (2, 1), max_iter=2, random_state=0),
        X,
        Y,
    ),
    "filters in a kernel": (
        ConvolutionalSVC((2, 2), (2, 1), kernel="rbf", max_iter=2, random_state=0),
        X,
        Y,
    ),
    "pipeline": (
        make_pipeline(
            make_column_transformer(
                (make_pipeline(SimpleImputer(), StandardScaler()), [0, 1, 2]),
                (OneHotEncoder(handle_unknown="ignore", sparse_output=False), [3]),
            ),
            BilevelSVC("ard", **QUICK),
        ),
        X,
        NAMES[Y],
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_round_trips_are_exact(name, tmp_path):
    model, inputs, labels = MODELS[name]
    model.fit(inputs, labels)
    again = bisvm.load(bisvm.save(model, tmp_path / "model.skops"))
    for method in ("decision_function", "predict"):
        ours, theirs = (getattr(one, method)(inputs) for one in (model, again))
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)
    last, again = (one[-1] if hasattr(one, "steps") else one for one in (model, again))
    assert repr(again) == repr(last)
    assert again.certificate_ == last.certificate_ or np.isnan(last.criterion_value_)
    assert again.kernel_ == last.kernel_ if hasattr(last, "kernel_") else True
    for ours, theirs in zip(last.history_, again.history_, strict=True):
        assert ours.value == theirs.value and np.array_equal(ours.theta, theirs.theta)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    model = BilevelSVC(**QUICK).fit(X, Y)
    return bisvm.save(model, tmp_path_factory.mktemp("models") / "model.skops")


class Stump(Linear):
    """A kernel that somebody else has written."""


def test_kernels_of_others_are_refused_by_name(tmp_path):
    model = BilevelSVC(Stump() * RBF(), **QUICK).fit(X, Y)
    path, name = tmp_path / "own.skops", f"{Stump.__module__}.Stump"
    bisvm.save(model, path)
    with pytest.raises(ValueError, match=f"does not know: {name}"):
        bisvm.load(path)


def test_kernels_of_others_load_if_they_are_trusted(tmp_path, monkeypatch):
    source = "from bisvm.kernels import RBF\n\nclass Stump(RBF):\n    pass\n"
    (tmp_path / "my_kernels.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    kernel = __import__("my_kernels").Stump
    model = BilevelSVC(kernel(), **QUICK).fit(X, Y)
    path = bisvm.save(model, tmp_path / "own.skops")
    for trusted in (["my_kernels.Stump"], [kernel]):
        again = bisvm.load(path, trusted=trusted)
        assert np.array_equal(again.decision_function(X), model.decision_function(X))
    with pytest.raises(TypeError, match="trusted lists types"):
        bisvm.load(path, trusted=[3])


def rewritten(path, change):
    """A copy of the archive whose tree has been changed, as bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for entry in old.namelist():
            data = old.read(entry)
            if entry == "schema.json":
                tree = json.loads(data)
                change(tree)
                data = json.dumps(tree).encode()
            new.writestr(entry, data)
    return out.getvalue()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("subprocess", "Popen"),
        ("bisvm.io.files", "import_module"),
        ("bisvm.kernels.base", "dataclass"),
        ("bisvm.estimators.fitted", "warnings"),
        ("bisvm.cli.demo", "main"),
        ("bisvm.data.chunks", "Chunks"),
        ("bisvm.kernels", "RBF"),
    ],
)
def test_no_other_type_is_made(saved, tmp_path, module, name):
    def change(tree):
        tree["__module__"], tree["__class__"] = module, name

    path = tmp_path / "changed.skops"
    path.write_bytes(rewritten(saved, change))
    with pytest.raises(ValueError, match=f"{module}.{name}"):
        bisvm.load(path)


def test_shapes_that_do_not_fit_are_damage(saved, tmp_path):
    model = bisvm.load(saved)
    model.support_vectors_ = model.support_vectors_[:, :1]
    path = bisvm.save(model, tmp_path / "narrow.skops")
    with pytest.raises(ValueError, match="support_vectors_ has shape"):
        bisvm.load(path)


@pytest.mark.parametrize("kernel", ["chi2", "additive_chi2", "laplacian"])
def test_compiled_kernels_look_at_the_number_of_columns(kernel):
    kernel = KERNELS[kernel]()
    with pytest.raises(ValueError, match="same number of"):
        kernel.gram(X, X[:, :2])


def test_what_is_no_model_is_refused(saved, tmp_path):
    path = tmp_path / "other"
    for content in (b"", b"a,b\n1,2\n", saved.read_bytes()[:500]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a model file"):
            bisvm.load(path)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        bisvm.load(tmp_path / "nothing")


def test_later_layouts_are_refused(saved, tmp_path):
    path = tmp_path / "later.skops"
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for entry in set(old.namelist()) - {"bisvm.json"}:
            new.writestr(entry, old.read(entry))
        new.writestr("bisvm.json", json.dumps({"layout": 99, "bisvm": "9.0"}))
    with pytest.raises(ValueError, match="written by bisvm 9.0"):
        bisvm.load(path)


def test_what_cannot_be_kept_is_not_written(tmp_path):
    model = BilevelSVC("rbf", callback=print, **QUICK).fit(X, Y)
    pipe = make_pipeline(StandardScaler(), model).fit(X, Y)
    for one in (model, pipe):
        with pytest.raises(TypeError, match="callback"):
            bisvm.save(one, tmp_path / "model.skops")
    with pytest.raises(TypeError, match="changes with every point"):
        bisvm.save(IncrementalSVC().fit(X, Y == 1), tmp_path / "model.skops")
    with pytest.raises(FileNotFoundError, match="no folder"):
        bisvm.save(model.set_params(callback=None), tmp_path / "no" / "model.skops")
    assert not list(tmp_path.iterdir())


# --- files that ask for more than there is --------------------------------------------


def with_entries(path, entries, compression=zipfile.ZIP_DEFLATED):
    """Add entries to an archive, or replace them."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w", compression) as new:
        for name in old.namelist():
            if name not in entries:
                new.writestr(name, old.read(name))
        for name, data in entries.items():
            new.writestr(name, data)
    return out.getvalue()


def npy(shape, data=b"", dtype="<f8"):
    """A file of an array, whatever its data are."""
    file = io.BytesIO()
    head = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, head)
    return file.getvalue() + data


def arrays_of(path):
    with zipfile.ZipFile(path) as archive:
        return [name for name in archive.namelist() if name.endswith(".npy")]


def many_nodes(path):
    """A large array that the tree names ten thousand times."""
    name = arrays_of(path)[0]
    node = {
        "__class__": "ndarray",
        "__module__": "numpy",
        "__loader__": "NdArrayNode",
        "type": "numpy",
        "file": name,
    }

    def change(tree):
        tree["more"] = [{**node, "__id__": number} for number in range(10_000)]

    entries = {name: npy((2**17,), bytes(2**20))}
    return lambda: with_entries(io.BytesIO(rewritten(path, change)), entries)


def archive_of(size):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", npy((size // 8,), bytes(size)))
    return out.getvalue()


ZEROS = 2**26
BOMBS = {
    "an array of zeros": lambda path: with_entries(
        path, {arrays_of(path)[0]: npy((ZEROS // 8,), bytes(ZEROS))}
    ),
    "an entry that nobody names": lambda path: with_entries(
        path, {"more": bytes(ZEROS)}
    ),
    "the header": lambda path: with_entries(path, {"bisvm.json": b" " * ZEROS}),
    "the tree": lambda path: with_entries(path, {"schema.json": b" " * 2**24}),
    "a shape without data": lambda path: with_entries(
        path, {arrays_of(path)[0]: npy((10**9, 10**9))}
    ),
    "an archive in the archive": lambda path: with_entries(
        path, {arrays_of(path)[0]: archive_of(ZEROS)}
    ),
    "one array many times": lambda path: many_nodes(path)(),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_asks_for_far_more_than_its_size_is_refused(name, saved, tmp_path):
    path = tmp_path / "bomb.skops"
    path.write_bytes(BOMBS[name](saved))
    assert path.stat().st_size < 10**6
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="on disk and asks for"):
            bisvm.load(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2**25


def test_a_model_that_was_compressed_afterwards_is_read(saved, tmp_path):
    path = tmp_path / "small.skops"
    path.write_bytes(with_entries(saved, {}))
    assert path.stat().st_size < 0.7 * saved.stat().st_size
    assert np.array_equal(bisvm.load(path).predict(X), bisvm.load(saved).predict(X))


@pytest.mark.parametrize("given", [None, 3, "", b"model.skops"])
def test_what_is_no_path_is_named(given, saved):
    for call in (bisvm.load, lambda path: bisvm.save(bisvm.load(saved), path)):
        with pytest.raises(TypeError, match="path must be the name of a file"):
            call(given)


def test_damaged_bytes_never_crash(saved, tmp_path):
    """Bytes of the archive changed at random: an error of one kind, or a model."""
    rng = np.random.default_rng(0)
    good, path = saved.read_bytes(), tmp_path / "damaged.skops"
    refused = 0
    for _ in range(40):
        bad = bytearray(good)
        for place in rng.integers(len(bad), size=rng.integers(1, 30)):
            bad[place] = rng.integers(256)
        path.write_bytes(bytes(bad))
        try:
            bisvm.load(path)
        except ValueError as error:
            refused += "damaged" in str(error) or "not a model" in str(error)
    assert refused > 20


def test_every_part_of_the_library_is_known():
    from bisvm.criteria.priors import PRIORS
    from bisvm.io.files import _is_ours
    from bisvm.losses import LOSSES
    from bisvm.machines.regularization import REGULARIZATIONS
    from bisvm.optimizers import OPTIMIZERS
    from bisvm.solvers import SOLVERS

    for registry in (KERNELS, LOSSES, OPTIMIZERS, REGULARIZATIONS, PRIORS, SOLVERS):
        for make in registry.values():
            kind = type(make())
            assert _is_ours(f"{kind.__module__}.{kind.__qualname__}"), kind
    assert not _is_ours(f"{Kernel.__module__}.Part")


def test_a_full_disk_is_an_error_and_the_old_file_stays(tmp_path):
    model = BilevelSVC("rbf", **QUICK).fit(X, Y)
    path = tmp_path / "model.skops"
    for before in (None, b"old"):
        if before is not None:
            path.write_bytes(before)
        with full_disk(), pytest.raises(OSError) as caught:
            bisvm.save(model, path)
        assert caught.value.filename == str(path)
        assert [one.read_bytes() for one in tmp_path.iterdir()] == [before] * bool(
            before
        )
