"""Possible problems of a table: leaks, identifiers, entities, duplicates, labels.

A check never changes the table. It names the option that does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from bisvm.core.types import Array, ArrayLike, UserData
from bisvm.tables.columns import (
    CATEGORY,
    LARGEST,
    MOSTLY,
    NUMBER,
    ColumnTypes,
    texts,
)
from bisvm.tables.errors import DataError, listed, pandas
from bisvm.tables.lines import TOTAL
from bisvm.tables.numbers import is_number, notations
from bisvm.tables.units import parts_of
from bisvm.tables.words import is_text

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# A column that alone has this balanced accuracy may be the target itself.
LEAK = 0.99
# Rows that are looked at for leaks, and columns.
LEAK_ROWS, LEAK_COLUMNS = 2000, 200
# Classes with fewer rows have a recall that is hardly known.
FEW_ROWS = 10
# Rows of an entity, in the mean at most; entities that there are at least.
MOST_OF_ENTITY, LEAST_ENTITIES = 50, 10
# Pairs of values of two columns that name the same entities, over their number.
SAME_ENTITIES = 1.05
# Share of rows whose entity has one class, from which on entities give classes away.
PURE = 0.95
# A share of held-out rows that are equal to training rows, and is worth a word.
MANY_EQUAL = 0.02
# Share of different values of a number that identifies rows.
DIFFERENT = 0.95
# Share of the cells with a number at their beginning from which on text is doubted, and
# with a number alone.
BEGINS, ALONE = 0.8, 0.3
# A number at the beginning of a cell, maybe behind a sign: <0.1, ~12, 120/80, 5'11".
NUMBER_FIRST = re.compile(r"[<>≤≥~≈±=+-]?\s*[$€£¥₹]?\s*\d|[½¼¾⅓⅔]")
# Numbers that stand for missing values, if they are far from all others.
SENTINEL = re.compile(
    r"-?(9{2,}|8{3,}|7{3,})(\.9+|\.0+)?|-1(\.0+)?|-?\d(\.\d+)?e\+?[23]\d+"
)
WHOLE_OR_FRACTION = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
# Different values of a column in which -1 is strange, if no other is negative.
MANY_VALUES = 10
# Words for what identifies a row, and for what may have several rows.
IDENTIFIER = re.compile(
    r"(^|[\W_])(nr|no|num|number|key|index|ref)([\W_]|$)"
    r"|(^|[\W_])(?i:ids?|uuid|guid|[chpsu]id(num|nr|no)?)([\W_]|$)"
    r"|[a-z](ID|Id|Nr|No)$"
)
ENTITY = re.compile(
    r"(^|[\W_])(patient|subject|person|proband|participant|user|customer|client|"
    r"member|animal|case|specimen|sample|session|site|device|sensor|station|batch|"
    r"family|household|group|donor|speaker|student|pupil|visit)s?([\W_]|$|id|nr)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class TableWarning:
    """A possible problem of a table.

    Attributes
    ----------
    kind : {"leak", "identifier", "entity", "labels", "duplicates", "few rows",
        "text", "missing", "spellings", "totals"}
    text : what was seen
    advice : what to do
    column : the column that it is about, or None
    others : further columns with the same problem
    """

    kind: str
    text: str
    advice: str
    column: str | None = None
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.text} {self.advice}"


def check_table(
    frame: UserData,
    y: Array,
    *,
    test: ArrayLike = (),
    grouped: bool = False,
    ignored: Sequence[str] = (),
    categorical: Sequence[str] = (),
) -> list[TableWarning]:
    """Return possible problems of a table with its target.

    Parameters
    ----------
    frame : data frame of the features, or sparse matrix
    y : (n,), labels, or numbers, whose checks are fewer
    test : numbers of the rows that are held out
    grouped : whether rows that belong together are known
    ignored : names of columns that are not used
    categorical : names of columns that are known to be categories
    """
    classes = y.dtype.kind != "f"
    found = [*_labels(y), *_few_rows(y)] if classes else []
    if not hasattr(frame, "columns"):
        return found
    used = frame.drop(columns=[name for name in ignored if name in frame])
    try:
        known = [name for name in categorical if name in used]
        types = ColumnTypes(categorical=known).fit(used)
    except DataError:
        # A cell that cannot be read: the error comes with its row where it is used.
        return found
    entities = [] if grouped else list(_entities(used, y))
    # What names an entity tells the class of its rows, and is no leak for that.
    named = {name for one in entities for name in (one.column, *one.others)}
    leaks = [] if not classes else list(_leaks(types, used, y))
    leaks = [one for one in leaks if one.column not in named]
    found += [*leaks, *_identifiers(types, used), *entities]
    found += [*_texts(types, used), *_missing(types, used), *_spellings(types, used)]
    found += _totals(types, used)
    return [*found, *_duplicates(used, test)]


def label_key(label: str) -> str:
    """What labels have in common that differ in case and spaces only.

    Or they are the same number: 1, 1.0 and 01.
    """
    if WHOLE_OR_FRACTION.fullmatch(label):
        return repr(float(label))
    return " ".join(unicodedata.normalize("NFKC", label).split()).casefold()


def same_labels(y: Array) -> dict[str, list[str]]:
    """Labels that differ in case or spaces only, the most frequent spelling first."""
    found: dict[str, list[str]] = {}
    classes, counts = np.unique(y, return_counts=True)
    for k in np.argsort(-counts, kind="stable"):
        found.setdefault(label_key(str(classes[k])), []).append(str(classes[k]))
    return {names[0]: names[1:] for names in found.values() if len(names) > 1}


def _labels(y: Array) -> Iterator[TableWarning]:
    for first, others in same_labels(y).items():
        yield TableWarning(
            "labels",
            f"Classes {listed([first, *others])} {_likeness(first)}.",
            "--merge-labels makes one class of them.",
        )


def _likeness(label: str) -> str:
    """What labels with the same key have in common."""
    number = WHOLE_OR_FRACTION.fullmatch(label)
    return "are the same number" if number else "differ in case or spaces only"


def _few_rows(y: Array) -> Iterator[TableWarning]:
    classes, counts = np.unique(y, return_counts=True)
    few = [k for k in np.argsort(counts, kind="stable") if counts[k] < FEW_ROWS]
    if few:
        shown = ", ".join(f"{str(classes[k])[:40]!r} ({counts[k]})" for k in few[:5])
        more = f" and {len(few) - 5} more" if len(few) > 5 else ""
        yield TableWarning(
            "few rows",
            f"Classes with few rows: {shown}{more}.",
            "How well they are predicted is uncertain: collect more, or merge them.",
        )


# --- columns that know too much -------------------------------------------------------


def _leaks(types: ColumnTypes, frame: DataFrame, y: Array) -> Iterator[TableWarning]:
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    rows = np.flatnonzero((counts > 1)[codes])
    rows = np.random.default_rng(0).permutation(rows)[:LEAK_ROWS]
    if len(rows) < 2 * FEW_ROWS or len(np.unique(y[rows])) < 2:
        return
    typed = types.transform(frame.iloc[rows])
    for name in list(types.kinds_)[:LEAK_COLUMNS]:
        share = _told_apart(typed[name], y[rows])
        if share >= LEAK:
            yield TableWarning(
                "leak",
                f"Column {name!r} alone tells the classes apart (balanced accuracy "
                f"{share:.1%}).",
                "If it is known only after the target, it gives the answer away: "
                f"--drop {_quoted(name)}.",
                name,
            )


def _told_apart(column: Series, y: Array) -> float:
    """Balanced accuracy, held out, of a tree of few leaves on one column."""
    values = column.to_numpy()
    if values.dtype.kind == "f":
        # Ranks: a tree sees no more, and its numbers are of single precision.
        filled = np.nan_to_num(values, nan=-LARGEST)
        numbers = np.unique(filled, return_inverse=True)[1].astype(float)
    else:
        numbers = _by_class(values.astype(str), y)
    counts = np.unique(y, return_counts=True)[1]
    tree = DecisionTreeClassifier(
        max_leaf_nodes=2 * len(counts), class_weight="balanced", random_state=0
    )
    folds = StratifiedKFold(int(min(counts.min(), 3)), shuffle=True, random_state=0)
    predicted = cross_val_predict(tree, numbers[:, None], y, cv=folds)
    return float(balanced_accuracy_score(y, predicted))


def _by_class(values: Array, y: Array) -> Array:
    """Numbers for categories, those of one class next to each other.

    Rare categories would have to be learned by heart: they share a number.
    """
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    labels = np.unique(y, return_inverse=True)[1]
    table = np.zeros((len(counts), labels.max() + 1))
    np.add.at(table, (codes, labels), 1)
    order = np.lexsort([np.arange(len(counts)), table.argmax(axis=1)])
    places = np.argsort(order).astype(float)
    places[counts < 3] = -1.0
    return np.asarray(places[codes])


def _identifiers(types: ColumnTypes, frame: DataFrame) -> Iterator[TableWarning]:
    for name, kind in types.kinds_.items():
        if kind == NUMBER and _identifies(name, frame[name]):
            yield TableWarning(
                "identifier",
                f"Column {name!r} has a different whole number in nearly every row, "
                "like an identifier.",
                f"It says nothing about new rows: --drop {_quoted(name)}.",
                name,
            )


def _identifies(name: str, column: Series) -> bool:
    numbers = pandas().to_numeric(column, errors="coerce").dropna().to_numpy(float)
    n = len(numbers)
    if n < 20 or (numbers % 1 != 0).any():
        return False
    different = len(np.unique(numbers)) / n
    if different < DIFFERENT:
        return False
    # Numbers of rows, in any order, leave few gaps.
    dense = different == 1.0 and numbers.max() - numbers.min() < 1.5 * n
    return bool(dense or IDENTIFIER.search(name))


# --- cells that may mean something else -----------------------------------------------


def _texts(types: ColumnTypes, frame: DataFrame) -> Iterator[TableWarning]:
    """Columns of text that look like numbers."""
    for name in frame.columns:
        # Codes are known to be what they are, and so are columns that were asked for.
        asked = name in types.categorical or name in types.codes_
        kind = types.kinds_.get(name, CATEGORY)
        if asked or kind != CATEGORY or not is_text(frame[name].dropna()):
            continue
        cells = frame[name].dropna().head(LEAK_ROWS)
        if pandas().to_numeric(cells, errors="coerce").notna().mean() >= MOSTLY:
            continue
        alone = cells.map(is_number)
        if len(cells) and alone.mean() >= ALONE:
            yield _of_mixed(str(name), cells, alone)
        elif name in types.kinds_ and cells.str.match(NUMBER_FIRST).mean() >= BEGINS:
            yield _of_numbers_first(str(name), cells)


def _of_mixed(name: str, cells: Series, alone: Series) -> TableWarning:
    """Numbers, and cells that are none, or have another decimal sign."""
    other = cells[~alone]
    if not len(other):
        _, english, _ = notations(cells)
        return TableWarning(
            "text",
            f"Column {name!r} has numbers, {english} of them with a decimal point and "
            "others with a decimal comma: it is taken for text.",
            f"Write them alike; --categorical {_quoted(name)} if it is right.",
            name,
        )
    word = str(other.value_counts().index[0])[:30]
    return TableWarning(
        "text",
        f"Column {name!r} has {int(alone.sum())} numbers, but also {word!r}: it is "
        "taken for text.",
        f"Correct it, or --missing={_quoted(word)}; --categorical {_quoted(name)} if "
        "it is right.",
        name,
    )


def _of_numbers_first(name: str, cells: Series) -> TableWarning:
    """Numbers with more behind them: 120/80, 10-20, 3 MB beside 512 kB."""
    units = {parts[1] for parts in cells.map(parts_of) if parts is not None}
    why = "several units" if len(units) > 1 else "more than a number"
    return TableWarning(
        "text",
        f"Column {name!r} has cells such as {str(cells.iloc[0])[:30]!r}, with {why}: "
        "it is taken for categories.",
        f"Write numbers alone, or --categorical {_quoted(name)}.",
        name,
    )


def _missing(types: ColumnTypes, frame: DataFrame) -> Iterator[TableWarning]:
    """Numbers that may stand for missing values."""
    for name, kind in types.kinds_.items():
        if kind != NUMBER or name in types.formats_:
            continue
        found = sentinel_of(pandas().to_numeric(frame[name], errors="coerce"))
        if found is not None:
            yield TableWarning(
                "missing",
                f"Column {name!r} has the number {found}, far from all others.",
                f"If it means a missing value: --missing={found}.",
                name,
            )


def sentinel_of(numbers: Series) -> str | None:
    """A number such as -9999 that lies far from all others, as it is written."""
    known = numbers.dropna().astype(float)
    for extreme in (known.min(), known.max()) if len(known) else ():
        rest = known[known != extreme]
        whole = extreme % 1 == 0 and abs(extreme) < 1e15
        text = repr(int(extreme)) if whole else repr(float(extreme))
        often = int((known == extreme).sum()) > 1
        below_zero = extreme < 0 <= rest.min() and often
        if rest.nunique() < 2 or not (below_zero or SENTINEL.fullmatch(text)):
            continue
        if extreme == -1:
            strange = below_zero and rest.nunique() >= MANY_VALUES
        else:
            width = rest.max() - rest.min()
            strange = not rest.min() - width <= extreme <= rest.max() + width
        if strange:
            return text
    return None


def _spellings(types: ColumnTypes, frame: DataFrame) -> Iterator[TableWarning]:
    """Categories that differ in case or spaces only."""
    for name, kind in types.kinds_.items():
        known = texts(frame[name].dropna()).unique() if kind == CATEGORY else []
        for first, others in list(same_labels(np.array(known, dtype=str)).items())[:1]:
            yield TableWarning(
                "spellings",
                f"Column {name!r} has the categories {listed([first, *others])}, which "
                f"{_likeness(first)}.",
                "If they mean the same, write them alike.",
                name,
            )


def _totals(types: ColumnTypes, frame: DataFrame) -> Iterator[TableWarning]:
    """Rows that may hold sums of others."""
    for name in frame.columns:
        kind = types.kinds_.get(name, CATEGORY)
        if kind != CATEGORY or not is_text(frame[name]):
            continue
        words = frame[name].dropna()
        words = words[words.str.fullmatch(TOTAL)]
        if len(words):
            rows = "row has" if len(words) == 1 else "rows have"
            yield TableWarning(
                "totals",
                f"{len(words)} {rows} {words.iloc[0]!r} in column {name!r} (data row "
                f"{int(words.index[0]) + 1}).",
                "If they are sums of other rows, remove them.",
                str(name),
            )


# --- rows that are not independent ----------------------------------------------------


def _entities(frame: DataFrame, y: Array) -> Iterator[TableWarning]:
    found: list[tuple[list[str], Array]] = []
    for name in frame.columns:
        codes, count = _codes(frame[name])
        n = len(y)
        enough = LEAST_ENTITIES <= count <= n / 2 and n / count <= MOST_OF_ENTITY
        if codes is None or not enough:
            continue
        named = bool(ENTITY.search(str(name)) or IDENTIFIER.search(str(name)))
        if named or (n / count >= 3 and _is_pure(codes, y)):
            like = [names for names, other in found if _same_entities(codes, other)]
            if like:
                like[0].append(str(name))
            else:
                found.append(([str(name)], codes))
    for names, codes in found:
        yield _of_entity(names, codes, frame)


def _same_entities(codes: Array, others: Array) -> bool:
    """Whether two columns name the same entities, but for a few."""
    both = len(np.unique(codes * (others.max() + 1) + others))
    return bool(both <= SAME_ENTITIES * (max(codes.max(), others.max()) + 1))


def _of_entity(names: Sequence[str], codes: Array, frame: DataFrame) -> TableWarning:
    first, *others = names
    also = f", and so has {listed(others)}," if others else ","
    text = (
        f"Column {first!r} has {codes.max() + 1} values in {len(codes)} rows{also} and "
        "rows of one value are both trained on and held out."
    )
    advice = (
        "If these rows are of one person or thing, the accuracy on new ones is lower: "
        f"--groups {_quoted(first)}."
    )
    if pandas().to_numeric(frame[first], errors="coerce").notna().all():
        advice += (
            f" If it is a running number of the rows: --drop {_quoted(first)}. If it "
            "is an ordinary count or measurement, ignore this."
        )
    return TableWarning("entity", text, advice, first, tuple(others))


def _codes(column: Series) -> tuple[Array | None, int]:
    """Numbers of the values of a text or of whole numbers, and how many there are."""
    pd = pandas()
    numbers = pd.to_numeric(column, errors="coerce")
    if pd.api.types.is_bool_dtype(column) or column.isna().any():
        return None, 0
    if numbers.notna().all() and (numbers % 1 != 0).any():
        return None, 0
    values, codes = np.unique(texts(column).to_numpy(str), return_inverse=True)
    return codes, len(values)


def _is_pure(codes: Array, y: Array) -> bool:
    """Whether rows of one entity nearly always have one class."""
    if y.dtype.kind == "f":
        return False
    labels = np.unique(y, return_inverse=True)[1]
    table = np.zeros((codes.max() + 1, labels.max() + 1))
    np.add.at(table, (codes, labels), 1)
    largest = table.sum(axis=0).max() / len(y)
    return bool(table.max(axis=1).sum() >= PURE * len(y) and largest < 0.8)


def _duplicates(frame: DataFrame, test: ArrayLike) -> Iterator[TableWarning]:
    """Held-out rows that are equal to training rows, in tables where that is odd."""
    n, held = len(frame), np.zeros(len(frame), dtype=bool)
    held[np.asarray(test, dtype=int)] = True
    if not held.any() or _combinations(frame) < 100 * n:
        return
    keys = pandas().util.hash_pandas_object(frame.astype(str), index=False).to_numpy()
    equal = int(np.isin(keys[held], keys[~held]).sum())
    if equal >= max(MANY_EQUAL * held.sum(), 2):
        yield TableWarning(
            "duplicates",
            f"{equal} of {held.sum()} held-out rows are equal to training rows.",
            "The accuracy on new rows is lower: remove duplicated rows, or name a "
            "column that they share by --groups.",
        )


def _combinations(frame: DataFrame) -> float:
    """How many different rows there could be, from the values of the columns."""
    with np.errstate(over="ignore"):
        return float(
            np.prod([max(frame[name].nunique(), 1) for name in frame], dtype=float)
        )


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w.-]+", name) else repr(name)
