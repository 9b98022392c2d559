"""Read files of records as data frames, checked against public knowledge about their columns.

The names in the header, the number of records and the schema are public; the cells are
not, so no message of this module holds the value of a cell or the number of a record.
"""

import bz2
import csv
import gzip
import lzma
import os
import zlib
from array import array
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from ..preprocessing import PublicSchema
from ..preprocessing.schema import CategoryColumn
from ..preprocessing.table_cells import as_number
from .messages import LOGGER, CommandError, columns_named, name_of

FOLDS = 5  # folds of the search, and so the least number of records
TEXTS, PARQUET = (".csv", ".tsv", ".txt"), (".parquet", ".pq")
PACKED = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
SEPARATORS = ",;\t|"


@dataclass(frozen=True)
class PersonColumn:
    """The column of person ids: texts, without gaps."""

    name: str


@dataclass(frozen=True)
class KeptColumn:
    """A column whose cells are copied unchanged."""

    name: str


def read_schema(path):
    """Return the PublicSchema in a file, or list all mistakes in it."""
    try:
        return PublicSchema.from_json(path)
    except ValueError as error:
        shown = f"The schema {name_of(path)}"
        said = str(error).replace(f"The schema in {path!r}", shown, 1)
        raise CommandError(said.replace("The schema breaks", f"{shown} breaks", 1)) from None


def read_header(path, separator=None):
    """Return the column names of a file, and read nothing else of it."""
    with _errors(path):
        if _ending(path) in PARQUET:
            return list(_pyarrow().read_schema(path).names)
        with _text(path) as stream:
            rows = csv.reader(stream, delimiter=_separator(path, separator), strict=True)
            names = [name.strip() for name in next(rows, [])]
    shown = f"The file {name_of(path)}"
    # without a header these would be cells of a record, so do not quote them
    if not names:
        raise CommandError(f"{shown} is empty; its first row must hold the names of the columns.")
    if "" in names:
        raise CommandError(
            f"{shown} has a column without a name; name it, or leave it out if it numbers the rows."
        )
    if len(set(names)) < len(names):
        raise CommandError(
            f"{shown} has two columns with one name, or no header; its first row must hold the names."
        )
    return names


def read_table(path, columns, separator=None, drop=(), others="refused", few=FOLDS):
    """Return the columns as a data frame, in order.

    Parameters
    ----------
    path : str
    columns : dict
        Name -> column of a schema, a PersonColumn or a KeptColumn.
    separator : str, default=None
        Of columns; None is found in the header.
    drop : list of str, default=()
        Columns of the file to leave out.
    others : {"refused", "left out"}, default="refused"
        What becomes of other columns.
    few : int, default=5
        Fewer records, or persons, are refused.

    Returns
    -------
    DataFrame
        Numbers as float64, NaN for gaps; categories as texts, None for gaps.

    Raises
    ------
    CommandError
        If the file cannot be read, or names all columns that do not fit.
    """
    shown = f"The file {name_of(path)}"
    names = read_header(path, separator)
    wrong = [f"it has no column {name_of(name)} (--drop)" for name in drop if name not in names]
    if lacking := [name for name in columns if name not in names]:
        wrong.append(f"it lacks the {columns_named(lacking)}")
    if not set(columns) & set(names):
        wrong = ["it has no column of the schema; its first row must hold the names"]
    elif others == "refused":
        more = [name for name in names if name not in (*columns, *drop)]
        wrong += [f"the schema lacks its {columns_named(more)}, which --drop leaves out"] if more else []
    _refuse(shown, wrong)
    LOGGER.info("reading %s", name_of(path))
    readers = {name: _Cells(column) for name, column in columns.items()}
    with _errors(path):
        if _ending(path) in PARQUET:
            frame = pandas().read_parquet(path, columns=list(columns))
            for name, cells in readers.items():
                for cell in frame[name].tolist():
                    cells.append(cell)
        else:
            _read_text(path, separator, [readers.get(name) for name in names])
    _refuse(
        shown,
        [
            f"its column {name_of(name)} {said}"
            for name, cells in readers.items()
            for said in sorted(cells.wrong)
        ],
    )
    persons = next((cells for cells in readers.values() if cells.person), None)
    unit, units = (
        ("records", next(iter(readers.values())).kept) if persons is None else ("persons", persons.known)
    )
    if len(units) < few:
        raise CommandError(f"{shown} has fewer than {few} {unit}, which is too few.")
    return pandas().DataFrame({name: cells.values() for name, cells in readers.items()})


def _refuse(shown, wrong):
    if wrong:
        raise CommandError(f"{shown} does not fit: {'; '.join(wrong)}.")


class _Cells:
    """The cells of one column, parsed as they are read, and their mistakes."""

    def __init__(self, column):
        self.column, self.wrong = column, set()
        self.person = isinstance(column, PersonColumn)
        self.copied = isinstance(column, KeptColumn)
        self.numeric = not (self.person or self.copied or isinstance(column, CategoryColumn))
        # floats are kept as eight bytes each, and one text for each category
        self.kept, self.known = (array("d") if self.numeric else []), {}

    def append(self, cell):
        read = self._copy if self.copied else self._number if self.numeric else self._category
        self.kept.append(read(cell))

    def _copy(self, cell):
        return "" if cell is None or cell != cell else cell

    def _number(self, cell):
        value = as_number(cell)
        if value is None or value in (np.inf, -np.inf):
            self.wrong.add(
                "has numeric bounds, but holds something that is not a finite number (of a "
                "date write the days since a public one)"
            )
            return np.nan
        if value != value and not self.column.missing:
            self.wrong.add(GAP)
        return value

    def _category(self, cell):
        if cell not in self.known:
            self.known[cell] = self._id(cell) if self.person else self._level(cell)
        return self.known[cell]

    def _id(self, cell):
        number = as_number(cell)
        if number is not None and number != number:
            self.wrong.add(
                "names the persons and has missing values, and rows of nobody would be one "
                "person, or many"
            )
        return str(cell).strip()

    def _level(self, cell):
        levels = self.column.levels
        try:
            code = int(self.column.read(np.array([cell], dtype=object))[0])
        except ValueError:  # refused as text and as number
            code = -1
        if code < 0:
            number = as_number(cell) if isinstance(cell, str) or cell is None else 0.0
            gap = number is not None and number != number
            self.wrong.add(
                GAP
                if gap
                else "holds something that the schema does not list: list every "
                'value that a record may have, or say "unknown": true'
            )
            return None
        return None if levels[code] == "<missing>" else str(levels[code])

    def values(self):
        return np.array(self.kept, dtype=np.float64 if self.numeric else object)


GAP = 'has missing values, and the schema does not say "missing": true'


def _read_text(path, separator, readers):
    with _text(path) as stream:
        rows = csv.reader(stream, delimiter=_separator(path, separator), strict=True)
        next(rows)
        for row in filter(None, rows):  # skip empty lines
            if len(row) != len(readers):
                raise CommandError(
                    f"The file {name_of(path)} has a record with more or fewer fields than its header."
                )
            for cell, cells in zip(row, readers):
                if cells is not None:
                    cells.append(cell)


def _separator(path, given):
    """Return the separator of columns: the candidate that occurs most in the header."""
    if given is not None:
        return given
    with _text(path) as stream:
        first = stream.readline()
    return max(SEPARATORS, key=first.count)


def _ending(path):
    """Return the ending of a path, before that of a compression."""
    inner = path.lower().removesuffix(_packing(path))
    known = TEXTS if _packing(path) else TEXTS + PARQUET
    ending = next((ending for ending in known if inner.endswith(ending)), None)
    if ending is None:
        raise CommandError(
            f"The file {name_of(path)} must end in .csv, .tsv or .txt (and then perhaps .gz, .bz2 or "
            ".xz), or "
            "in .parquet."
        )
    return ending


def _packing(path):
    return next((ending for ending in PACKED if ending and path.lower().endswith(ending)), "")


def _text(path):
    return PACKED[_packing(path)](path, "rt", encoding="utf-8-sig", newline="")


@contextmanager
def _errors(path):
    """Translate errors of reading a file, without quoting it."""
    shown = f"The file {name_of(path)}"
    try:
        yield
    except CommandError:
        raise
    except UnicodeDecodeError:  # its message quotes bytes of the file
        raise CommandError(f"{shown} is not UTF-8 text.") from None
    except csv.Error:
        raise CommandError(f"{shown} is not well-formed CSV; check its quotation marks.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError):
        raise CommandError(f"{shown} is not a complete compressed file.") from None
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else "it is damaged"
        raise CommandError(f"{shown} cannot be read ({why}).") from None
    except Exception:
        if _ending(path) not in PARQUET:
            raise
        raise CommandError(f"{shown} is not a whole Parquet file.") from None


def pandas():
    return _needed("pandas", "pandas", "Tables")


def _pyarrow():
    return _needed("pyarrow.parquet", "pyarrow", "Parquet files")


def _needed(module, package, what):
    try:
        return import_module(module)
    except ImportError:
        raise CommandError(
            f"{what} need {package}; run python -m pip install {package} first."
        ) from None
