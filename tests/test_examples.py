"""Every example runs as a program of its own."""

import ast
import importlib
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))

# What an example must have printed.
PRINTS = {
    "cluster.py": ["largest difference from one process: 0e+00", "rows are right"],
    "callback.py": ["to the end", "good enough", "Ctrl-C at evaluation"],
    "mlflow_logging.py": ["stopped after", "The callback asked for it"],
    "resume.py": ["killed at evaluation 20", "bit for bit: True", "kernel was 'ard'"],
    "own_kernel.py": ["gradients agree", "RationalQuadratic"],
    "own_optimizer.py": ["L-BFGS-B", "31 hyperparameters"],
    "multiple_kernels.py": ["kernels used", "learned plane"],
    "signals.py": ["filter bank, learned", "pass bands"],
    "plot_landscape.py": ["evaluations, validation loss"],
    "plot_regression.py": ["covered:", "below the 95% quantile"],
    "plot_unbalanced.py": ["as they come", "balanced accuracy"],
    "plot_moons.py": ["most relevant: moons 1 and moons 2", "grid search"],
}
# Those that `make test` runs, in its own process: a start takes longer than they do.
SHORT = ["callback.py", "own_kernel.py", "own_optimizer.py"]
NEEDS = {"cluster.py": ["dask.array", "distributed"]}


@pytest.mark.full
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example(path, tmp_path):
    if "matplotlib" in path.read_text(encoding="utf-8"):
        pytest.importorskip("matplotlib")
    for package in NEEDS.get(path.name, []):
        pytest.importorskip(package)
    environment = {
        **os.environ,
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "DISPLAY": "",  # with one, Agg complains that it cannot show a window
    }
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", str(path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    # Dask remarks when a busy machine is slow to stop its workers.
    said = [line for line in done.stderr.splitlines() if " distributed." not in line]
    assert not said
    for text in PRINTS[path.name]:
        assert text in done.stdout


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_example_in_this_process(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES[0].parent / name), run_name="__main__")
    out = capsys.readouterr().out
    for text in PRINTS[name]:
        assert text in out


def test_every_example_is_listed():
    assert {path.name for path in EXAMPLES} == set(PRINTS)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_what_an_example_imports_exists(path):
    """Most examples run in `make test-full` only."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("bisvm"):
            module = importlib.import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name)


@pytest.mark.full  # in one process in tests/estimators/test_drawn.py
def test_what_is_logged_to_mlflow(tmp_path):
    """A stand-in for MLflow counts what it is told."""
    (tmp_path / "mlflow.py").write_text(
        "from contextlib import nullcontext as start_run\n"
        "steps = []\n"
        "def log_metrics(values, step): steps.append((step, sorted(values)))\n"
        "def log_params(values): print('mlflow', len(steps), steps[-1], list(values))\n"
    )
    example = EXAMPLES[0].parent / "mlflow_logging.py"
    done = subprocess.run(
        [sys.executable, str(example)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    names = ["C", "best_loss", "gamma", "loss", "seconds"]
    first, last = done.stdout.splitlines()
    n = int(first.split()[1])
    assert first == f"mlflow {n} ({n}, {names}) ['C', 'kernel']"
    assert last.startswith(f"stopped after {n} evaluations")


@pytest.mark.full
def test_benchmark_of_two_workers():
    pytest.importorskip("distributed")
    from benchmarks import cluster

    text = cluster.run(200, 1).to_text()
    assert "The same to 1e-10: yes" in text
