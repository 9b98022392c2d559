"""Recognise the files of ledgers by their contents, whatever their names are."""

import os

from ..utils.type_aliases import PathLike

# magic bytes of an SQLite database, its write-ahead log (two byte orders), and its journal
BEGINNINGS = (
    b"SQLite format 3\0",
    b"\x37\x7f\x06\x82",
    b"\x37\x7f\x06\x83",
    b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7",
)
SUFFIXES = ("-wal", "-shm", "-journal")


def is_ledger_file(path: PathLike) -> bool:
    """Return whether a path is that of a ledger, or of a file that SQLite keeps beside one.

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
    >>> from dpselect.ledger import is_ledger_file
    >>> is_ledger_file("no file")
    False
    """
    for name in (os.fspath(path), os.path.realpath(path)):
        ending = next((ending for ending in SUFFIXES if name.lower().endswith(ending)), "")
        if _is_of_sqlite(name) or (ending and _is_of_sqlite(name[: -len(ending)])):
            return True
    return False


def _is_of_sqlite(path):
    if not os.path.isfile(path):  # opening a pipe would block
        return False
    try:
        with open(path, "rb") as stream:
            return stream.read(16).startswith(BEGINNINGS)
    except OSError:  # unreadable, so treat it as a ledger
        return True
