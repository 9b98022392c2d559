"""Refuse a table with a column of which no cell is what the schema says."""

from .table_cells import CellError
from .table_form import plain_values

# rows that are read first; twice as many are read next while no cell is what the schema says
FIRST_ROWS = 256


def refuse_foreign_columns(columns, known):
    """Refuse a column of which no cell is a listed category, or lies between the bounds.

    It would tell nothing, in silence: "Y" and "N" where "yes" and "no" are listed, or fractions of 100
    between bounds of 0 and 1. It is enough that one cell fits, and a column of gaps passes. Of one row
    nothing follows: it may be made up, or the first one of many.

    Parameters
    ----------
    columns : list
        Columns of a table in memory.
    known : list of NumberColumn or CategoryColumn
        What the schema says of each.

    Raises
    ------
    CellError
        The message names all such columns, and quotes no cell.
    """
    pairs = zip(columns, known, strict=True)
    if foreign := [
        column.name for cells, column in pairs if len(cells) > 1 and is_foreign(cells, column)
    ]:
        raise CellError(
            f"Column{'s' * (len(foreign) > 1)} {', '.join(map(repr, foreign))} of X: no cell is one of "
            "the categories in the schema, or lies between its bounds, so a model would learn nothing "
            "from it; write categories as the table spells them, and bounds in its unit."
        )


def is_foreign(cells, column):
    """Return whether no cell of a column is what the schema says, and one is something else."""
    n, start, length, foreign = len(cells), 0, FIRST_ROWS, False
    cells = getattr(cells, "iloc", cells)
    while start < n:
        fits, others = column.fit_of(plain_values(cells[start : start + length]))
        if fits:
            return False
        start, length, foreign = start + length, 2 * length, foreign or others
    return foreign
