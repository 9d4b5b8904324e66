"""The convolutional networks that the thesis compares with: Tables 3.1, 4.1 and 4.4.

"As equivalent as possible": one 5 x 5 filter, no subsampling, identity behind the
convolution. The linear network (3.1) feeds the feature map into ten sigmoid outputs.
The others have one hidden layer of sigmoids (500 nodes for MNIST, 800 for CIFAR) and
two outputs. Log loss, stochastic gradients with Nesterov's momentum, L2 penalty 1e-5.
The rates are the thesis's: 1e-3 (linear), 0.1 (MNIST, 3 against 5), 1e-4 (CIFAR); the
size of batches and the number of epochs are not published. Networks with another rate
stand beside them, since a rate means little without these.

Figure 3.5 has the filters of two linear networks that part 0 from 1, figure 3.6 their
feature maps. Needs PyTorch: pip install 'bisvm[cnn]'.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from bisvm import datasets
from experiments.common import Context, Result, Spread, Table, drawing
from experiments.published import Cell, read
from experiments.seed002.cifar_kernels import Images
from experiments.seed002.mnist_kernels import Digits

TITLE = "Networks of Tables 3.1, 4.1 and 4.4, figure 3.5: one filter and a classifier"
FILTER = 5
MOMENTUM, PENALTY = 0.9, 1e-5
RUNS = 3


@dataclass(frozen=True)
class Network:
    """A convolution, perhaps a hidden layer, sigmoid outputs; how it is trained."""

    classes: int
    hidden: int
    rate: float
    epochs: int
    batch: int


@dataclass(frozen=True)
class Part:
    """Images (n, height, width) with pixels in [0, 1], and classes from zero."""

    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Task:
    """One table's network: data, settings, and the published accuracies."""

    table: str
    train: Part
    test: Part
    networks: dict[str, Network]
    published: tuple[Spread, Spread]
    ours: Cell


def torch_module() -> Any:
    """Import PyTorch, or say how to get it."""
    try:
        import torch
    except ImportError as error:
        raise ModuleNotFoundError(
            "The networks of seed 002 need PyTorch, which is not installed: "
            "pip install 'bisvm[cnn]'."
        ) from error
    torch.set_num_threads(1)
    return torch


def trained(network: Network, part: Part, seed: int) -> Any:
    """A network that has seen all images of the part `epochs` times."""
    torch = torch_module()
    torch.manual_seed(seed)
    height, width = (size - FILTER + 1 for size in part.X.shape[1:])
    inputs = height * width
    layers: list[Any] = [torch.nn.Conv2d(1, 1, FILTER), torch.nn.Flatten()]
    if network.hidden:
        layers += [torch.nn.Linear(inputs, network.hidden), torch.nn.Sigmoid()]
    layers.append(torch.nn.Linear(network.hidden or inputs, network.classes))
    model = torch.nn.Sequential(*layers)
    loss = torch.nn.BCEWithLogitsLoss(reduction="sum")
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=network.rate,
        momentum=MOMENTUM,
        nesterov=True,
        weight_decay=PENALTY,
    )
    X = torch.as_tensor(part.X[:, None], dtype=torch.float32)
    Y = torch.nn.functional.one_hot(torch.as_tensor(part.y), network.classes).float()
    for _ in range(network.epochs):
        for rows in torch.randperm(len(X)).split(network.batch):
            optimizer.zero_grad()
            (loss(model(X[rows]), Y[rows]) / len(rows)).backward()
            optimizer.step()
    return model


def accuracy(model: Any, part: Part) -> float:
    """Per cent of the images whose largest output is right."""
    torch = torch_module()
    with torch.no_grad():
        X = torch.as_tensor(part.X[:, None], dtype=torch.float32)
        outputs = torch.cat([model(rows) for rows in X.split(1000)])
    return 100.0 * float(np.mean(outputs.argmax(dim=1).numpy() == part.y))


def filter_of(model: Any) -> np.ndarray:
    """(5, 5)."""
    weight: np.ndarray = model[0].weight.detach().numpy()[0, 0]
    return weight


# --- the three tables -----------------------------------------------------------------


def tasks() -> list[Task]:
    mnist = datasets.load("mnist")
    digits, images = Digits.mnist(), Images.cifar().stacked()
    whole = [
        Part(X / 255.0, np.asarray(y, dtype=np.int64))
        for X, y in ((mnist.X, mnist.y), (mnist.X_test, mnist.y_test))
    ]
    pair = [_signed(p.X, p.y, digits.shape) for p in (digits.train, digits.test)]
    planes = [_signed(p.X, p.y, images.shape) for p in (images.train, images.test)]
    return [
        Task(
            "3.1",
            *whole,
            {"rate 1e-3": Network(10, 0, 1e-3, 4, 100)},
            (Spread(91.92, 0.089), Spread(91.60, 0.15)),
            Cell(
                "table_3_1",
                "test %",
                {"model": "L-CSVM", "trained by": "Pegasos, λ = 0.1"},
            ),
        ),
        Task(
            "4.1",
            *pair,
            {
                "rate 0.1": Network(2, 500, 0.1, 30, 100),
                "rate 0.02": Network(2, 500, 0.02, 60, 100),
            },
            (Spread(100.0, 0.0), Spread(98.38, 0.25)),
            Cell(
                "table_4_1",
                "test %",
                {
                    "model": "K-CSVM",
                    "trained": "as published: polynomial, constant steps",
                },
            ),
        ),
        Task(
            "4.4",
            *planes,
            {
                "rate 1e-4, batches of 10": Network(2, 800, 1e-4, 5, 10),
                "rate 1e-2": Network(2, 800, 1e-2, 30, 100),
            },
            (Spread(94.54, 2.09), Spread(80.15, 1.09)),
            Cell(
                "table_4_4",
                "test %",
                {"model": "K-CSVM", "variant": "quasi-Newton steps"},
            ),
        ),
    ]


def _signed(X: np.ndarray, y: np.ndarray, shape: tuple[int, ...]) -> Part:
    """Rows as images; +1 is the first class."""
    return Part(np.reshape(X, (len(y), *shape)), np.where(y > 0, 0, 1).astype(np.int64))


def run(context: Context) -> Result:
    runs = min(context.splits, RUNS)
    rows: list[list[Any]] = []
    notes = []
    for task in tasks():
        rows.append([task.table, "published", None, *task.published, None])
        found = {}
        for name, network in task.networks.items():
            fits = [outcome(network, task, seed) for seed in range(runs)]
            train, test, seconds = map(Spread.of, zip(*fits, strict=True))
            rows.append(["", name, network.epochs, train, test, seconds.mean])
            found[name] = test
        notes.append(_verdict(task, found))
    columns = {
        "table": "",
        "network": "",
        "epochs": "",
        "training %": ".2f",
        "test %": ".2f",
        "seconds": ".0f",
    }
    table = Table("Networks with one filter", columns, rows)
    figures = _pictures()
    return Result([table], figures, [*notes, _protocol(runs)])


def outcome(network: Network, task: Task, seed: int) -> tuple[float, float, float]:
    """Training and test accuracy, and seconds."""
    began = time.perf_counter()
    model = trained(network, task.train, seed)
    seconds = time.perf_counter() - began
    return accuracy(model, task.train), accuracy(model, task.test), seconds


def _verdict(task: Task, found: dict[str, Spread]) -> str:
    """Whether the convolutional SVM is above the network, as the thesis says."""
    mean, _ = read("seed002", task.ours)
    best = max(found, key=lambda name: found[name].mean)
    word = "above" if mean > found[best].mean else "not above"
    return (
        f"Table {task.table}: the convolutional SVM has {mean:.2f}% "
        f"(`{task.ours.file}`), {word} the best network here, {best}: "
        f"{found[best]:.2f}. Published: the SVM is above."
    )


def _protocol(runs: int) -> str:
    return (
        f"Mean ± standard deviation over {runs} runs. Batches of 100 images where "
        f"nothing is said; momentum {MOMENTUM}, L2 penalty {PENALTY:g}. The best of "
        "a table's networks is chosen by its test accuracy, in its favour."
    )


def _pictures() -> dict[str, Any]:
    """Filters of two networks for 0 against 1, and what they make of two images."""
    data = datasets.load("mnist")
    rows = np.flatnonzero(data.y < 2)
    part = Part(data.X[rows] / 255.0, np.asarray(data.y[rows], dtype=np.int64))
    network = Network(2, 0, 0.01, 5, 100)
    models = [trained(network, part, seed) for seed in (0, 1)]
    shown = [part.X[np.flatnonzero(part.y == label)[0]] for label in (0, 1)]
    with drawing() as plt:
        filters, axes = plt.subplots(1, 2, figsize=(4.2, 2.2))
        for ax, model in zip(axes, models, strict=True):
            _image(ax, filter_of(model))
        maps, axes = plt.subplots(2, 3, figsize=(5.4, 3.6))
        for row, image in zip(axes, shown, strict=True):
            _image(row[0], image)
            for ax, model in zip(row[1:], models, strict=True):
                _image(ax, feature_map(model, image))
        for ax, title in zip(axes[0], ("image", "network 1", "network 2"), strict=True):
            ax.set_title(title)
    return {"figure_3_5": filters, "figure_3_6": maps}


def feature_map(model: Any, image: np.ndarray) -> np.ndarray:
    torch = torch_module()
    with torch.no_grad():
        X = torch.as_tensor(image[None, None], dtype=torch.float32)
        found: np.ndarray = model[0](X).numpy()[0, 0]
    return found


def _image(ax: Any, values: np.ndarray) -> None:
    ax.imshow(values, cmap="gray")
    ax.set_xticks([])
    ax.set_yticks([])
