"""A CSV file as rows and labels, checked against what is public about its columns.

The names in the header, the number of records and the schema are public; the cells are
not, so no message of this module holds the value of a cell or the number of a record.
"""

import csv
import gzip
import zlib
from array import array
from collections import Counter
from dataclasses import dataclass

import numpy as np

from ..preprocessing.cells import MISSING_TEXTS, as_number
from .messages import CommandError, name_of
from .schema import is_categorical

FOLDS = 5  # of the search; fewer records cannot be split
MOST_LABELS = 100  # that are taken from the records before the target looks like a number
# without bounds: squares of this, added up over the columns, are finite
LARGEST = 1e150


@dataclass(frozen=True)
class Table:
    """Records of a file.

    Attributes
    ----------
    domains : dict
        Name -> column of the schema, in the order of the file, without the target; None for numbers
        on their own scale.
    X : ndarray of shape (n, p)
        float64, or object if there are categorical columns.
    y : ndarray of str, shape (n,)
        Labels.
    classes : list of str
        All labels, sorted.
    labels_were_learned : bool
        Whether `classes` come from the records.
    """

    domains: dict
    X: np.ndarray
    y: np.ndarray
    classes: list
    labels_were_learned: bool


def read_table(path, target, schema=None):
    """Read and check a file.

    Parameters
    ----------
    path : str
        Ends in .csv or .csv.gz.
    target : str
        Column of the labels.
    schema : dict, default=None
        All columns, see :mod:`.schema`; None takes every column as numeric.

    Returns
    -------
    Table

    Raises
    ------
    CommandError
        If anything is wrong with the file.
    """
    shown = f"The file {name_of(path)}"
    opener = _opener(path, shown)
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
            return _read(csv.reader(stream, strict=True), shown, target.strip(), schema)
    except UnicodeDecodeError:  # its text quotes bytes of the file
        raise CommandError(f"{shown} is not UTF-8 text.") from None
    except csv.Error:
        raise CommandError(f"{shown} is not well-formed CSV; check its quotation marks.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise CommandError(f"{shown} is not a complete gzip file.") from None
    except OSError as error:
        raise CommandError(f"{shown} cannot be read ({error.strerror}).") from None


def _opener(path, shown):
    if path.lower().endswith(".csv"):
        return open
    if path.lower().endswith(".csv.gz"):
        return gzip.open
    raise CommandError(f"{shown} must end in .csv or .csv.gz.")


def _read(reader, shown, target, schema):
    header = next(reader, None)
    if not header:
        raise CommandError(f"{shown} is empty; its first row must hold the names of the columns.")
    header = [name.strip() for name in header]
    _check_header(header, shown, target)
    learned = schema is None or target not in schema
    domains = {} if learned else {target: schema[target]}
    columns = [name for name in header if name != target]
    domains |= _domains(columns, target, schema)
    given = None if learned else domains[target]
    if not learned and (not is_categorical(given) or given.missing or given.unknown):
        raise CommandError(
            f"The bounds file must give the target {name_of(target)} its classes as strings, and "
            'nothing else, such as ["0", "1"].'
        )
    labels = {}
    parsers = {name: _parser(name, domain) for name, domain in domains.items()}
    if learned:
        parsers[target] = _label_parser(target, labels)
    cells = _cells(reader, shown, [parsers[name] for name in header])
    cells = dict(zip(header, cells))
    if learned and len(labels) < 2:
        raise CommandError(
            f"The target {name_of(target)} has only one label, and two are needed; list its "
            "classes in the bounds file if there are others."
        )
    y = cells.pop(target)
    if not learned:
        classes = list(map(str, given.categories))
        y = [classes[code] for code in given.read(np.array(y, dtype=object))]
    domains = {name: domains[name] for name in columns}
    classes = sorted(labels if learned else classes)
    return Table(domains, _matrix(cells, domains), np.array(y), classes, learned)


def _check_header(header, shown, target):
    # the target first: in a file without a header the other "names" are cells
    if target not in header:
        raise CommandError(
            f"{shown} has no column {name_of(target)} (--target); its first row must hold the "
            "names of the columns."
        )
    if "" in header:
        raise CommandError(
            f"{shown} has a column without a name; name it, or leave it out if it numbers the rows."
        )
    name, times = Counter(header).most_common(1)[0]
    if times > 1:
        raise CommandError(f"{shown} has two columns with the name {name_of(name)}.")
    if len(header) == 1:
        raise CommandError(f"{shown} has no column besides the target {name_of(target)}.")


def _domains(columns, target, schema):
    if schema is None:
        return dict.fromkeys(columns)
    for name in schema.keys() - {target, *columns}:
        raise CommandError(f"The bounds file has a column {name_of(name)} that the records lack.")
    for name in columns:
        if name not in schema:
            raise CommandError(
                f"The bounds file lacks the column {name_of(name)}; give its bounds or categories, "
                "or leave the column out of the records."
            )
    return {name: schema[name] for name in columns}


def _cells(reader, shown, parsers):
    """Return one sequence of values for each parser; floats are kept as eight bytes each."""
    columns = [array("d") if parse.numeric else [] for parse in parsers]
    steps = [(parse, column.append) for parse, column in zip(parsers, columns)]
    for record in reader:
        if not record:  # an empty line
            continue
        if len(record) != len(steps):
            raise CommandError(
                f"{shown} has a record with more or fewer fields than its header."
            )
        for cell, (parse, append) in zip(record, steps):
            append(parse(cell))
    if len(columns[0]) < FOLDS:
        raise CommandError(f"{shown} has fewer than {FOLDS} records, which cannot be split.")
    return columns


def _parser(name, domain):
    if is_categorical(domain):
        return _category_parser(name, domain)
    return _number_parser(name, domain)


def _is_missing(cell):
    return cell.strip().lower() in MISSING_TEXTS


def _missing(name, fix):
    return CommandError(
        f"The column {name_of(name)} has missing values, which are not filled in here; {fix}."
    )


def _number_parser(name, column):
    bounded = column is not None
    largest = np.finfo(float).max if bounded else LARGEST

    def parse(cell):
        value = as_number(cell)
        gap = value != value
        if value is None or (gap and not (bounded and column.missing)) or abs(value) > largest:
            raise _not_a_number(name, gap, bounded)
        return value

    parse.numeric = True
    return parse


def _not_a_number(name, gap, bounded):
    if gap:
        return _missing(name, 'say "missing": true in the bounds file, or leave the column out')
    if bounded:
        return CommandError(
            f"The column {name_of(name)} has numeric bounds, but holds something that is not a "
            "finite number."
        )
    return CommandError(
        f"The column {name_of(name)} holds something that is not a number of ordinary size; give "
        "all its categories, or the bounds of its numbers, with --bounds."
    )


def _category_parser(name, column):
    known = {}

    def parse(cell):
        # one string object for each category, however many records
        if cell not in known:
            if column.read(np.array([cell], dtype=object))[0] < 0:
                raise _not_a_category(name, cell)
            known[cell] = cell.strip()
        return known[cell]

    parse.numeric = False
    return parse


def _not_a_category(name, cell):
    if _is_missing(cell):
        return _missing(name, 'say "missing": true in the bounds file, or leave the column out')
    return CommandError(
        f"The column {name_of(name)} holds something that the bounds file does not list; list "
        'every value that a record may have, or say "unknown": true.'
    )


def _label_parser(name, labels):
    def parse(cell):
        if _is_missing(cell):
            raise _missing(name, "a record without a label cannot be used")
        value = cell.strip()
        if len(labels) >= MOST_LABELS and value not in labels:
            raise CommandError(
                f"The target {name_of(name)} has more than {MOST_LABELS} different labels and "
                "looks like a number; list its classes in the bounds file if it is not."
            )
        return labels.setdefault(value, value)

    parse.numeric = False
    return parse


def _matrix(cells, domains):
    """Return the columns side by side, as objects only if some are strings."""
    kind = object if any(map(is_categorical, domains.values())) else np.float64
    X = np.empty((len(next(iter(cells.values()))), len(domains)), dtype=kind)
    for j, name in enumerate(domains):
        X[:, j] = cells[name]
    return X
