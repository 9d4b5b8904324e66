"""Compiled functions where nothing can be written."""

import errno
import gc
import importlib.util
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import bisvm
from bisvm.core import compiling

SOURCE = """
from bisvm.core.compiling import njit

@njit(cache=True)
def twice(x):
    return 2.0 * x

@njit(cache=True)
def thrice(x):
    return 3.0 * x
"""


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A folder of sources, where compiled code cannot be kept."""
    compiling._say_that_nothing_is_kept.cache_clear()
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    for name in ("HOME", "XDG_CACHE_HOME", "IPYTHONDIR"):
        monkeypatch.setenv(name, os.devnull)
    # A file by the name of the folder: not even root can write into it.
    (tmp_path / "__pycache__").touch()
    yield tmp_path
    compiling._say_that_nothing_is_kept.cache_clear()


def imported(path):
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_functions_are_compiled_and_one_line_says_that_none_is_kept(nowhere):
    with pytest.warns(UserWarning, match="NUMBA_CACHE_DIR") as seen:
        module = imported(nowhere / "readonly.py")
    assert len(seen) == 1 and "\n" not in str(seen[0].message)
    assert module.twice(2.0) == 4.0
    assert module.twice.signatures and not module.twice.stats.cache_path


def test_a_disk_that_is_full_costs_time_only(tmp_path, monkeypatch):
    compiling._say_that_nothing_is_kept.cache_clear()
    module = imported(tmp_path / "full.py")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    with pytest.warns(UserWarning, match="cannot be stored"):
        assert module.twice(2.0) == 4.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert module.twice(3) == 6.0


def test_garbage_is_collected_again_after_compiled_code_is_loaded(tmp_path):
    for collects in (True, False):
        module = imported(tmp_path / "again.py")
        try:
            gc.enable() if collects else gc.disable()
            assert module.twice(2.0) == 4.0
            assert gc.isenabled() is collects
        finally:
            gc.enable()


READ_ONLY = """
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    from bisvm import BilevelSVC
(one,) = seen
print(one.filename, BilevelSVC.__name__)
"""


@pytest.mark.full
def test_the_package_is_imported_from_a_read_only_installation(tmp_path):
    home = Path(bisvm.__file__).parent
    shutil.copytree(
        home, tmp_path / "bisvm", ignore=shutil.ignore_patterns("__pycache__")
    )
    for folder in (tmp_path / "bisvm").rglob("*"):
        if folder.is_dir():
            (folder / "__pycache__").touch()
    nowhere = {"HOME": os.devnull, "XDG_CACHE_HOME": os.devnull, "NUMBA_CACHE_DIR": ""}
    shown = subprocess.run(
        [sys.executable, "-c", READ_ONLY],
        env={**os.environ, **nowhere, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.split() == ["<string>", "BilevelSVC"]
