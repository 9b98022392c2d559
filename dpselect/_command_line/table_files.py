"""Read files of records as data frames, checked against public knowledge about their columns.

The names in the header, the number of records and the schema are public; the cells are
not, so no message of this module holds the value of a cell or the number of a record.
"""

import csv
import gzip
import lzma
import os
import re
import zlib
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module

from ..preprocessing import PublicSchema
from ..preprocessing.foreign_columns import is_foreign
from ..preprocessing.schema import NumberColumn
from ..preprocessing.table_cells import as_number
from .file_columns import PersonCells, cells_of
from .messages import LOGGER, CommandError, columns_named, name_of
from .text_files import PACKED, TextFile, TextFormat

FOLDS = 5  # folds of the search, and so the least number of records
TEXTS, PARQUET = (".csv", ".tsv", ".txt"), (".parquet", ".pq")
NO_NAMES = (
    "it has no column of the schema; its first row must hold the names, and --separator says what "
    "stands between them"
)
ROWS = 2**16  # rows of a Parquet file that are read at once
# the index of a dataframe, which has no name
INDEX = re.compile(r"__index_level_\d+__")
YEAR = re.compile(r"(19|20)\d\d")


def read_schema(path):
    """Return the PublicSchema in a file, or list all mistakes in it."""
    try:
        return PublicSchema.from_json(path)
    except ValueError as error:
        shown = f"The schema {name_of(path)}"
        said = str(error).replace(f"The schema in {path!r}", shown, 1)
        raise CommandError(said.replace("The schema breaks", f"{shown} breaks", 1)) from None


def read_header(path, form=None):
    """Return the column names of a file, "" where there is none, and read nothing else of it."""
    with _errors(path):
        return _opened(path, form).names


def found_format(path, form=None):
    """Return how a file is written, with the separator that was found; a Parquet file as a CSV would."""
    with _errors(path):
        return _opened(path, form).form


def read_table(path, columns, form=None, drop=(), others="refused", few=FOLDS):
    """Return the columns as a data frame, in order.

    Parameters
    ----------
    path : str
    columns : dict
        Name -> column of a schema, a PersonColumn or a KeptColumn.
    form : TextFormat, default=None
        Of a text file.
    drop : list of str, default=()
        Columns of the file to leave out.
    others : {"refused", "left out"}, default="refused"
        What becomes of other columns. Those without a name are left out.
    few : int, default=5
        Fewer records, or persons, are refused.

    Returns
    -------
    DataFrame
        Numbers as float64, NaN for gaps; categories as a pandas Categorical of texts.

    Raises
    ------
    CommandError
        If the file cannot be read, or names all columns that do not fit.
    """
    shown = f"The file {name_of(path)}"
    with _errors(path):
        file = _opened(path, form)
        names = file.names
        wrong = [_not_there(name, names) for name in drop if name not in names]
        if lacking := [name for name in columns if name not in names]:
            nameless = [f"column {i} of the file has no name" for i, n in enumerate(names, 1) if not n]
            wrong.append(" and ".join([f"it lacks the {columns_named(lacking)}", *nameless[:1]]))
        if not set(columns) & set(names):
            wrong = [NO_NAMES]
        elif others == "refused":
            more = list(dict.fromkeys(name for name in names if name not in ("", *columns, *drop)))
            if any(map(is_no_name, more)):
                wrong.append(
                    "its first row has numbers, as a record has, and must hold the names (--drop leaves "
                    "out columns that are named by numbers)"
                )
            elif more:
                wrong.append(f"the schema lacks its {columns_named(more)}, which --drop leaves out")
        if twice := [name for name in columns if names.count(name) > 1]:
            wrong.append(f"it has the {columns_named(twice)} more than once")
        _refuse(shown, wrong)
        LOGGER.info("reading %s", name_of(path))
        cells = {name: cells_of(column, file.form) for name, column in columns.items()}
        for block in file.blocks([names.index(name) for name in cells]):
            for each, column in zip(cells.values(), block.columns):
                each.add(column)
    _refuse(
        shown,
        [
            f"its column {name_of(name)} {said}"
            for name, each in cells.items()
            for said in sorted(each.wrong)
        ],
    )
    frame = pandas().DataFrame({name: each.values() for name, each in cells.items()})
    persons = next((each for each in cells.values() if isinstance(each, PersonCells)), None)
    unit, n = ("records", len(frame)) if persons is None else ("persons", len(persons.found))
    if n < few:
        raise CommandError(f"{shown} has fewer than {few} {unit}, which is too few.")
    return frame


def refuse_foreign_numbers(frame, columns, path):
    """Refuse a table with columns of numbers that all lie beyond their bounds."""
    numbers = {name: column for name, column in columns.items() if isinstance(column, NumberColumn)}
    _refuse(
        f"The file {name_of(path)}",
        [
            f"its column {name_of(name)} has no number between the bounds of the schema; write bounds "
            "in the unit of the file"
            for name, column in numbers.items()
            if is_foreign(frame[name], column)
        ],
    )


def is_no_name(name):
    """Return whether the name of a column is a number, as of a record, and no year."""
    return as_number(name) is not None and name != "" and not YEAR.fullmatch(name)


def check_dropped(drop, names, path):
    """Refuse names of columns to leave out that a file lacks."""
    _refuse(f"The file {name_of(path)}", [_not_there(name, names) for name in drop if name not in names])


def _not_there(name, names):
    parts = [part.strip() for part in name.split(",")]
    instead = f"; write --drop {' '.join(parts)}" if len(parts) > 1 and set(parts) <= set(names) else ""
    return f"it has no column {name_of(name)} (--drop){instead}"


class _ParquetFile:
    """A Parquet file; see TextFile."""

    def __init__(self, path, form):
        if form.encoding is not None:
            raise CommandError(
                f"--encoding is of text files, and {name_of(path)} is a Parquet file; leave it out."
            )
        self.form = replace(form, separator=form.separator or ",")
        self._file = _pyarrow().ParquetFile(path)
        self._schema, self._path = self._file.schema_arrow, path
        self.names = ["" if INDEX.fullmatch(name) else name for name in self._schema.names]

    def blocks(self, places):
        from pyarrow import types

        for place in places:
            kind = self._schema.field(place).type
            if types.is_nested(kind):
                raise CommandError(
                    f"The file {name_of(self._path)} does not fit: its column "
                    f"{name_of(self.names[place])} holds lists or records ({name_of(kind)}); write it "
                    "as one or more columns of numbers or texts, or leave it out (--drop)."
                )
        wanted = [self._schema.names[place] for place in places]
        for block in self._file.iter_batches(ROWS, columns=wanted):
            yield block.select(wanted)


def _opened(path, form):
    ending, form = _ending(path), form or TextFormat()
    _pyarrow()
    return _ParquetFile(path, form) if ending in PARQUET else TextFile(path, _packing(path), form)


def _refuse(shown, wrong):
    if wrong:
        raise CommandError(f"{shown} does not fit: {'; '.join(wrong)}.")


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


@contextmanager
def _errors(path):
    """Translate errors of reading a file, without quoting it."""
    shown = f"The file {name_of(path)}"
    try:
        yield
    except CommandError:
        raise
    except (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError):
        raise CommandError(f"{shown} is not a complete compressed file.") from None
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else "it is damaged"
        raise CommandError(f"{shown} cannot be read ({why}).") from None
    # messages of libraries quote bytes of the file
    except (csv.Error, UnicodeError, *_arrow_errors()) as error:
        raise CommandError(f"{shown} {_why(path, error)}.") from None


def _arrow_errors():
    from pyarrow import ArrowException

    return (ArrowException,)


def _why(path, error):
    if _ending(path) in PARQUET:
        return "is not a whole Parquet file"
    said = str(error)
    if isinstance(error, UnicodeError) or "invalid UTF8" in said:
        return (
            "is not UTF-8 text, or not in the encoding that was given; name it, such as --encoding "
            'cp1252, or convert the file (in a spreadsheet: save as "CSV UTF-8")'
        )
    # one message, as it may depend on the place of a record which of the two is noticed
    return (
        "has a record with more or fewer fields than its header, or is not well-formed CSV; check its "
        "quotation marks and separators, and whether a column (of row names) has no name"
    )


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
