"""Files of ledgers, told from others by what they hold, whatever their names are."""

import os

from ..utils.type_aliases import PathLike

# how SQLite begins a database, its write-ahead log (in two byte orders), and a journal
BEGINNINGS = (
    b"SQLite format 3\0",
    b"\x37\x7f\x06\x82",
    b"\x37\x7f\x06\x83",
    b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7",
)
BESIDE = ("-wal", "-shm", "-journal")


def is_of_a_ledger(path: PathLike) -> bool:
    """Tell whether a path leads to a ledger, or to a file that SQLite keeps beside one.

    Another database of SQLite counts as a ledger: what it holds may be one of an older version.

    Parameters
    ----------
    path : str or path-like
        Symbolic links are followed, and a hard link has the same content. No file need be there.

    Returns
    -------
    bool

    Examples
    --------
    >>> from dpselect.ledger import is_of_a_ledger
    >>> is_of_a_ledger("no file")
    False
    """
    for name in (os.fspath(path), os.path.realpath(path)):
        ending = next((ending for ending in BESIDE if name.lower().endswith(ending)), "")
        if _is_of_sqlite(name) or (ending and _is_of_sqlite(name[: -len(ending)])):
            return True
    return False


def _is_of_sqlite(path):
    if not os.path.isfile(path):  # a pipe would be waited for
        return False
    try:
        with open(path, "rb") as stream:
            return stream.read(16).startswith(BEGINNINGS)
    except OSError:  # what cannot be read may be anything
        return True
