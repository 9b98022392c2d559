"""Compute the features of a table in memory, a slice of its records at a time."""

import math
from functools import cached_property, lru_cache
from itertools import groupby

import numpy as np

from ..rows import CodedRows, equal_rows, is_arrow
from ..utils.same import Same
from .arrow_columns import arrow_view, holds_numbers
from .number_scale import NumberScale
from .schema import NumberColumn
from .table_cells import CellError
from .table_form import distinct_cells, plain_values
from .terms import NumberTerm, NumberTerms

# upper bound on codes of several categories together, whose sums are made in one go
MOST_TOGETHER = 1 << 10


class TableEncoding:
    """A plan for encoding the columns of a table, made once for slices of any length.

    All numbers of a slice are read and scaled together, and those that become the same features are
    expanded together, one feature after the other: functions of numpy are fast on long rows.

    Parameters
    ----------
    terms : tuple of Term
    columns : dict
        From names to columns of the table.
    known : dict
        From names to what the schema says of them.
    strict : bool, default=False
        Whether categories that are not listed are refused.

    Attributes
    ----------
    n_entries : int
        Upper bound on the features of a record that are not 0.
    """

    def __init__(self, terms, columns, known, strict=False):
        self.n_records = len(next(iter(columns.values())))
        numbers = [name for name, column in known.items() if isinstance(column, NumberColumn)]
        self.numbers = {name: _numbers(known[name], columns[name]) for name in numbers}
        self.codes = {
            name: _codes(known[name], columns[name], strict)
            for name in columns.keys() - self.numbers.keys()
        }
        self.terms = terms
        of_terms = _of_terms(Same(terms), Same(known[name] for name in numbers))
        self.scale, self.n_entries, self.parts = of_terms

    def __sizeof__(self):
        """Return the bytes of the columns, as they are read."""
        columns = (*self.numbers.values(), *self.codes.values())
        return object.__sizeof__(self) + sum(getattr(column, "nbytes", 0) for column in columns)

    def __call__(self, rows):
        """Return the features of a slice of the records, or of several, shape (b, n_features)."""
        z, read = self._read(rows)
        return _written(self.parts, self.terms[-1].outputs.stop, z, read)

    @cached_property
    def _by_codes(self):
        """Tuple of parts to be written densely, their places, and for each code its terms and tables."""
        dense, places, terms, tables, n_codes = [], [], [], [], math.inf
        for outputs, term, numbers in self.parts:
            table = getattr(term, "table", None)
            if table is None:
                start = len(places)
                places += range(outputs.start, outputs.stop)
                dense.append((slice(start, len(places)), term, numbers))
                continue
            n_codes *= table.shape[1]
            if n_codes > MOST_TOGETHER:
                terms.append([])
                tables.append([])
                n_codes = table.shape[1]
            terms[-1].append(term)
            tables[-1].append((outputs, table))
        return dense, np.array(places, dtype=int), terms, tables

    @property
    def n_coded(self):
        """int : Number of features and codes of a record in :meth:`coded`."""
        return len(self._by_codes[1]) + len(self._by_codes[2])

    def coded(self, rows):
        """Return the features of a slice of the records as :class:`CodedRows`."""
        z, read = self._read(rows)
        dense, places, terms, tables = self._by_codes
        codes = [
            _together([term.places(*(read[name] for name in term.columns)) for term in some], own)
            for some, own in zip(terms, tables)
        ]
        rows = _written(dense, len(places), z, read)
        return CodedRows(rows, places, codes, tables, self.terms[-1].outputs.stop)

    def sparse(self, rows):
        """Return the features as a CSR array with `n_entries` of each record, zeros among them."""
        z, read = self._read(rows)
        b, start = z.shape[1], 0
        values, places = np.empty((self.n_entries, b)), np.empty((self.n_entries, b), dtype=np.int32)
        for outputs, term, numbers in self.parts:
            if isinstance(term, NumberTerms):
                stored = slice(start, start + outputs.stop - outputs.start)
                term.write(z[numbers], values[stored])
                places[stored] = np.arange(outputs.start, outputs.stop)[:, np.newaxis]
            else:
                stored = slice(start, start + term.n_entries)
                values[stored], at = term.entries(*(read[name] for name in term.columns))
                np.add(at, outputs.start, out=places[stored], casting="same_kind")
            start = stored.stop
        return equal_rows(values, places, self.terms[-1].outputs.stop)

    def _read(self, rows):
        """Return the scaled numbers of a slice, shape (p, b), and all columns by name."""
        runs = rows if isinstance(rows, list) else [rows]
        ends = np.cumsum([0, *(len(range(*run.indices(self.n_records))) for run in runs)])
        z = np.empty((len(self.numbers), ends[-1]))
        for numbers, cells in zip(z, self.numbers.values()):
            for run, start, end in zip(runs, ends, ends[1:]):
                found = cells[run]
                numbers[start:end] = found if isinstance(found, np.ndarray) else plain_values(found)
        if self.numbers:
            self.scale.check(z)
            self.scale.apply(z)
        read = dict(zip(self.numbers, z))
        for name, codes in self.codes.items():
            read[name] = codes[rows] if runs[0] is rows else np.concatenate([codes[run] for run in runs])
        return z, read


def _together(codes, tables):
    """Return one code for the codes of several categories; the last one counts fastest."""
    bases = [table.shape[1] for _, table in tables]
    kind = np.min_scalar_type(math.prod(bases))
    joined = codes[0].astype(kind)
    for own, base in zip(codes[1:], bases[1:]):
        joined *= kind.type(base)
        joined += own.astype(kind)
    return joined


def _written(parts, n_features, z, read):
    """Return the features of scaled numbers and columns, shape (b, n_features)."""
    features = np.empty((n_features, z.shape[1]))
    for outputs, term, places in parts:
        if isinstance(term, NumberTerms):
            term.write(z[places], features[outputs])
        else:
            term.write(features[outputs], *(read[name] for name in term.columns))
    return features.T


@lru_cache(maxsize=16)
def _of_terms(terms, numbers):
    """Return the scale of the columns of numbers, `n_entries` and parts: the same for each table."""
    scale = NumberScale(numbers) if numbers else None
    places = {column.name: j for j, column in enumerate(numbers)}
    return scale, sum(term.n_entries for term in terms), _parts(terms, places)


def _parts(terms, places):
    """Return (outputs, term, None), or (outputs, NumberTerms, indices) for runs of equal terms."""

    def key(i):
        term = terms[i]
        if not isinstance(term, NumberTerm):
            return i
        (column,) = term.parts
        # columns without a term may lie between them, so compare positions
        return term.expansion, column.missing, column.periodic, places[column.name] - i

    parts = []
    for _, run in groupby(range(len(terms)), key):
        first, *others = (terms[i] for i in run)
        if not isinstance(first, NumberTerm):
            parts.append((first.outputs, first, None))
            continue
        start, n = places[first.parts[0].name], 1 + len(others)
        outputs = slice(first.start, [first, *others][-1].outputs.stop)
        parts.append((outputs, NumberTerms([first, *others]), slice(start, start + n)))
    return parts


def _numbers(known, column):
    """Return a function from slices to a column's numbers; texts and objects are parsed here, once."""
    found = distinct_cells(column)
    if found is not None:
        return known.numbers(found[0])[found[1]]
    if not _is_of_numbers(column):
        return known.numbers(plain_values(column))
    if is_arrow(column):
        return arrow_view(column)
    if hasattr(column, "iloc"):
        # slices of a series may be by its labels
        return column.to_numpy() if isinstance(column.dtype, np.dtype) else type(column)(column.array)
    if isinstance(column, np.ndarray):
        return column
    try:
        # slicing a polars series takes as long as work on a small block
        return column.to_numpy(allow_copy=False)
    except RuntimeError:
        return column


def _codes(known, column, strict):
    """Return the codes of a column of categories; each distinct text is parsed once."""
    distinct, places = distinct_cells(column) or (plain_values(column), slice(None))
    if distinct.dtype == np.float64:
        known.check_numbers(distinct)
    codes = known.read(distinct)
    if strict and (codes < 0).any():
        raise CellError(
            f"Column {known.name!r} of X holds a value that the schema does not list, or a gap that it "
            "does not declare, and handle_unknown='error'; list every value that a record may have, or "
            "write 'unknown': True in the schema."
        )
    # one more code for what is not listed; counts of codes need them to be at least 0
    codes = np.where(codes < 0, len(known.levels), codes)
    codes = codes.astype(np.min_scalar_type(len(known.levels)))
    return places if _is_same(codes, places) else codes[places]


def _is_same(codes, places):
    """Return whether codes at positions are the positions themselves, of which no copy is needed."""
    return (
        getattr(places, "itemsize", math.inf) <= codes.itemsize
        and places.min(initial=0) >= 0
        and np.array_equal(codes, np.arange(len(codes)))
    )


def _is_of_numbers(column):
    if is_arrow(column):
        return holds_numbers(column)
    numeric = getattr(column.dtype, "is_numeric", None)
    return numeric() if numeric is not None else column.dtype.kind in "biuf"
