"""What experiments share: results with tables, random splits, units, pictures."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tools.version import commit

# --- results --------------------------------------------------------------------------


@dataclass(frozen=True)
class Context:
    """What an experiment is told: over how many random splits to average.

    output : folder of the results, for experiments that keep their raw figures there
    only : parts of names; experiments on many data sets run those that have one of them
    """

    splits: int = 20
    output: Path | None = None
    only: Sequence[str] = ()

    def chosen(self, names: Iterable[str]) -> list[str]:
        """The names that `only` asks for; all of them if it is empty."""
        return [
            name
            for name in names
            if not self.only or any(part in name for part in self.only)
        ]


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over the splits; printed as mean ± deviation."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        values = np.asarray(list(values), dtype=float)
        deviation = values.std(ddof=1) if len(values) > 1 else 0.0
        return cls(float(values.mean()), float(deviation))

    def __format__(self, spec: str) -> str:
        return f"{self.mean:{spec}} ± {self.deviation:{spec}}"


@dataclass(frozen=True)
class Table:
    """A table of figures, ours next to the published ones.

    title : one line
    columns : names, or a mapping from name to format, such as {"H": ".4f"}
    rows : cells are text, numbers, `Spread`, or None for "nothing to say"
    name : a suffix of the CSV file's name, needed where a result has several tables
    """

    title: str
    columns: Sequence[str] | Mapping[str, str]
    rows: Sequence[Sequence[Any]]
    name: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"A row of {self.title!r} has {len(row)} cells for "
                    f"{len(self.columns)} columns: {row!r}."
                )

    def to_text(self) -> str:
        """Aligned columns, numbers to the right."""
        cells = [list(self.columns), *self._texts()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        left = [self._is_text(j) for j in range(len(widths))]
        lines = [
            "  ".join(
                cell.ljust(width) if to_left else cell.rjust(width)
                for cell, width, to_left in zip(row, widths, left, strict=True)
            ).rstrip()
            for row in cells
        ]
        rule = "  ".join("-" * width for width in widths)
        return "\n".join([self.title, "", lines[0], rule, *lines[1:]])

    def to_markdown(self) -> str:
        rules = ["---" if self._is_text(j) else "--:" for j in range(len(self.columns))]
        lines = [_escaped(self.columns), rules, *map(_escaped, self._texts())]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return f"**{self.title}**\n\n{body}"

    def to_csv(self) -> str:
        """Full precision; a column of spreads becomes two, mean and deviation."""
        spread = [
            any(isinstance(row[j], Spread) for row in self.rows)
            for j in range(len(self.columns))
        ]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        header = [
            [name, f"{name} (deviation)"] if double else [name]
            for name, double in zip(self.columns, spread, strict=True)
        ]
        writer.writerow([name for names in header for name in names])
        for row in self.rows:
            cells = [_raw(cell, s) for cell, s in zip(row, spread, strict=True)]
            writer.writerow([value for values in cells for value in values])
        return out.getvalue()

    def _texts(self) -> list[list[str]]:
        formats = (
            list(self.columns.values())
            if isinstance(self.columns, Mapping)
            else [""] * len(self.columns)
        )
        return [
            [_text(cell, spec) for cell, spec in zip(row, formats, strict=True)]
            for row in self.rows
        ]

    def _is_text(self, j: int) -> bool:
        return any(isinstance(row[j], str) for row in self.rows)


def _escaped(cells: Iterable[str]) -> list[str]:
    """Cells of a Markdown table, where a bar would end them."""
    return [cell.replace("|", "\\|") for cell in cells]


def _text(cell: Any, spec: str) -> str:
    if cell is None:
        return "-"
    return cell if isinstance(cell, str) else format(cell, spec)


def _raw(cell: Any, double: bool) -> list[Any]:
    if isinstance(cell, Spread):
        return [f"{cell.mean:.8g}", f"{cell.deviation:.3g}"]
    value = "" if cell is None else cell
    if isinstance(value, (float, np.floating)):
        value = f"{value:.8g}"
    return [value, ""] if double else [value]


@dataclass(frozen=True)
class Result:
    """What `run` returns.

    tables : in the order in which one reads them
    figures : matplotlib figures; the key is a suffix of the file's name, "" for none
    notes : one remark a line: what was chosen, what agrees, what does not
    """

    tables: Sequence[Table] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def to_text(self) -> str:
        notes = "".join(f"- {note}\n" for note in self.notes)
        blocks = [*(table.to_text() + "\n" for table in self.tables), notes]
        return "\n".join(block for block in blocks if block)

    def to_markdown(
        self, heading: str, pictures: Sequence[str] = (), made: str = ""
    ) -> str:
        blocks = [f"# {heading}"]
        blocks += [table.to_markdown() for table in self.tables]
        blocks += [f"![{Path(name).stem}]({name})" for name in pictures]
        if self.notes:
            blocks.append("\n".join(f"- {note}" for note in self.notes))
        blocks.append(f"Made with commit {commit()}{made}.")
        return "\n\n".join(blocks) + "\n"

    def write(
        self, folder: Path, name: str, heading: str, made: str = ""
    ) -> list[Path]:
        """Write `name`.md, a CSV file a table, a PNG file a figure.

        made : what the last line of the page adds to the commit, such as the seconds
        """
        folder.mkdir(parents=True, exist_ok=True)
        pictures = []
        for suffix, figure in self.figures.items():
            pictures.append(folder / f"{_joined(name, suffix)}.png")
            save_figure(figure, pictures[-1])
        page = folder / f"{name}.md"
        names = [path.name for path in pictures]
        page.write_text(self.to_markdown(heading, names, made))
        sheets = []
        for table in self.tables:
            sheets.append(folder / f"{_joined(name, table.name)}.csv")
            sheets[-1].write_text(table.to_csv())
        return [page, *sheets, *pictures]


def _joined(name: str, suffix: str) -> str:
    return f"{name}_{suffix}" if suffix else name


# --- data and splits ------------------------------------------------------------------


def random_splits(
    y: Any,
    sizes: Sequence[int],
    n_splits: int,
    *,
    stratified: bool = True,
    seed: int = 0,
) -> list[tuple[np.ndarray, ...]]:
    """`n_splits` times as many disjoint parts of the rows as there are sizes.

    Split k depends on `seed` and k alone, so that the first five of twenty are those of
    five. `stratified` parts hold every class in its share of the whole, up to one.
    """
    y = np.asarray(y)
    if sum(sizes) > len(y):
        raise ValueError(f"Parts of {list(sizes)} rows asked for; there are {len(y)}.")
    ends = np.cumsum(sizes)
    splits = []
    for number in range(n_splits):
        rng = np.random.default_rng([seed, number])
        order = _mixed(y, rng) if stratified else rng.permutation(len(y))
        splits.append(tuple(np.sort(p) for p in np.split(order, ends)[: len(sizes)]))
    return splits


def _mixed(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random order in which every stretch holds the classes in their shares."""
    place = np.empty(len(y))
    for label in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == label))
        place[members] = (np.arange(len(members)) + rng.random()) / len(members)
    return np.argsort(place)


@dataclass(frozen=True)
class HoldOut:
    """Training and validation rows put together, and the `cv` that parts them again.

    A fitted estimator's final machine has seen both, and no other rows.
    """

    X: np.ndarray
    y: np.ndarray
    cv: list[tuple[np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, X: Any, y: Any, train: np.ndarray, validation: np.ndarray) -> HoldOut:
        rows = np.concatenate([train, validation])
        first, second = np.split(np.arange(len(rows)), [len(train)])
        return cls(X[rows], np.asarray(y)[rows], [(first, second)])


def standardize(X: Any, rows: Any = slice(None)) -> np.ndarray:
    """Columns shifted and scaled to mean 0 and variance 1 on the given rows."""
    X = np.asarray(X, dtype=float)
    deviation = X[rows].std(axis=0)
    return (X - X[rows].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def binary(y: Any, positive: Any) -> np.ndarray:
    """+1 where y is the positive class, -1 elsewhere."""
    return np.where(np.asarray(y) == positive, 1, -1)


# --- units of seed 000 ----------------------------------------------------------------


def seed_H(mse: Any, folds: int = 1) -> Any:
    """H = sum over folds of |f - y|^2 / 2L, from our mean over the folds."""
    return 0.5 * folds * mse


def inverse(C_or_c: Any) -> Any:
    """c = 1 / C, and C = 1 / c."""
    return 1.0 / np.asarray(C_or_c)


# --- pictures -------------------------------------------------------------------------

STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "savefig.dpi": 120,
}


@contextmanager
def drawing() -> Iterator[Any]:
    """Draw in the style of the experiments, without a display: gives pyplot.

    >>> with drawing() as plt:                                   # doctest: +SKIP
    ...     figure, axes = plt.subplots(1, 2, figsize=(7, 3))
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        yield plt


def save_figure(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        figure.savefig(path)
    plt.close(figure)
