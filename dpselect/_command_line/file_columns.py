"""The cells of single columns of a file, read block by block, with their mistakes.

Cells are private: no mistake quotes one.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from ..preprocessing.arrow_columns import arrow_values, holds_numbers, holds_text
from ..preprocessing.schema import CategoryColumn
from ..preprocessing.table_cells import CellError, as_number
from .text_files import TextFormat

GAP = 'has missing values, and the schema does not say "missing": true'
NO_NUMBER = (
    'has numeric bounds, but holds something that is not a finite number (of dates say "date" in the '
    'schema, of decimal commas --decimal , and of other gaps "missing_values" in the schema)'
)
NO_DAY = (
    "has dates, but holds something that is not a date (say --date-format if they are not written as "
    '2026-12-31, and of other gaps "missing_values" in the schema)'
)
NOBODY = "names the persons and has missing values, and rows of nobody would be one person, or many"
UNLISTED = (
    "holds something that the schema does not list: list every value that a record may have, or say "
    '"unknown": true'
)


@dataclass(frozen=True)
class PersonColumn:
    """The column of person ids: texts, without gaps."""

    name: str


@dataclass(frozen=True)
class KeptColumn:
    """A column whose cells are copied unchanged."""

    name: str


class NumberCells:
    """Cells of a column with bounds, as float64."""

    def __init__(self, column, form):
        if form.dates and column.dates:
            column = replace(column, dates=(column.dates[0], form.dates))
        self.column, self.form, self.wrong, self.parts = column, form, set(), []
        self._none = NO_NUMBER if column.dates is None else NO_DAY

    def add(self, cells):
        """Add an Arrow array."""
        x = self.column.without_codes(self._numbers(cells))
        if np.isinf(x).any():
            self.wrong.add(self._none)
        if not self.column.missing and np.isnan(x).any():
            self.wrong.add(GAP)
        self.parts.append(x)

    def _numbers(self, cells):
        import pyarrow as pa
        import pyarrow.compute as pc

        numbers = self.column.dates is None
        if numbers and holds_numbers(cells):
            return arrow_values(cells)
        if numbers and holds_text(cells) and not pa.types.is_dictionary(cells.type):
            cells = self.form.numbers(cells)
            with suppress(pa.ArrowInvalid):  # a gap, or another spelling
                found = pc.if_else(pc.equal(cells, ""), None, cells).cast(pa.float64())
                # Arrow reads other words as NaN than the rest of the library
                if not pc.any(pc.is_nan(found)).as_py():
                    return arrow_values(found)
        coded = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
        distinct = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
        try:
            numbers = self.column.parsed(distinct)
        except CellError:
            numbers = np.array([self._number(distinct[i : i + 1]) for i in range(len(distinct))])
        return numbers[_places(coded, len(distinct) - 1)]

    def _number(self, cell):
        try:
            return self.column.parsed(cell)[0]
        except CellError:
            self.wrong.add(self._none)
            return 0.0

    def values(self):
        """Return all cells."""
        return np.concatenate(self.parts) if self.parts else np.empty(0)


class DistinctCells:
    """Cells of a column of which each distinct one is read once, as an index among `found`."""

    def __init__(self, column, form):
        self.column, self.wrong, self.parts, self.found, self._known = column, set(), [], [], {}

    def add(self, cells):
        """Add an Arrow array."""
        import pyarrow as pa

        coded = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
        distinct = coded.dictionary.to_pylist()
        places = _places(coded, len(distinct))
        met = np.zeros(len(distinct) + 1, dtype=bool)
        met[places] = True
        codes = [self._index(cell) if seen else -1 for cell, seen in zip([*distinct, None], met)]
        self.parts.append(np.array(codes, dtype=np.int32)[places])

    def _index(self, cell):
        if cell not in self._known:
            self._known[cell] = self.index(cell)
        return self._known[cell]

    def indices(self):
        return np.concatenate(self.parts) if self.parts else np.empty(0, dtype=np.int32)


class CategoryCells(DistinctCells):
    """Cells of a column with categories: a pandas Categorical of texts."""

    def index(self, cell):
        """Return the index of a cell among the levels, -1 of a gap."""
        try:
            code = int(self.column.read(np.array([cell, None], dtype=object)[:1])[0])
        except CellError:  # neither text nor number
            code = -1
        if code < 0:
            number = as_number(cell)
            self.wrong.add(GAP if number is not None and number != number else UNLISTED)
        return code

    def values(self):
        """Return all cells."""
        from pandas import Categorical

        levels = list(map(str, self.column.levels))
        codes = self.indices()
        if self.column.missing:
            levels, codes = levels[:-1], np.where(codes == len(levels) - 1, -1, codes)
        return Categorical.from_codes(codes, levels)


class PersonCells(DistinctCells):
    """Ids of persons, as texts."""

    def index(self, cell):
        """Return the index of an id."""
        number = as_number(cell)
        if number is not None and number != number:
            self.wrong.add(NOBODY)
        self.found.append(str(cell).strip())
        return len(self.found) - 1

    def values(self):
        """Return all ids."""
        return np.array([*self.found, None], dtype=object)[:-1][self.indices()]


class KeptCells:
    """Cells that are copied."""

    def __init__(self, column, form):
        self.wrong, self.cells = set(), []

    def add(self, cells):
        """Add an Arrow array."""
        self.cells += ["" if cell is None or cell != cell else cell for cell in cells.to_pylist()]

    def values(self):
        """Return all cells."""
        return np.array([*self.cells, None], dtype=object)[:-1]


def cells_of(column, form=None):
    """Return the reader of the cells of a column, which are written in a TextFormat."""
    kinds = {CategoryColumn: CategoryCells, PersonColumn: PersonCells, KeptColumn: KeptCells}
    return kinds.get(type(column), NumberCells)(column, form or TextFormat())


def _places(coded, gap):
    """Return the index of each cell in the dictionary, `gap` of a null."""
    import pyarrow as pa

    return coded.indices.cast(pa.int32()).fill_null(gap).to_numpy(zero_copy_only=False)
