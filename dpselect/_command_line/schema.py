"""The bounds file: what is public about each column, a PublicSchema."""

from ..preprocessing import PublicSchema
from ..preprocessing.schema import CategoryColumn
from .messages import CommandError, name_of


def is_categorical(column):
    """Tell whether a column has categories; None is one of numbers on their own scale."""
    return isinstance(column, CategoryColumn)


def read_bounds(path):
    """Return the columns that a bounds file describes.

    Parameters
    ----------
    path : str

    Returns
    -------
    dict
        Name -> column.

    Raises
    ------
    CommandError
        If the file cannot be read, or names all that is wrong in it.
    """
    shown = f"The bounds file {name_of(path)}"
    try:
        return dict(PublicSchema.from_json(path).columns)
    except ValueError as error:
        said = str(error).replace(f"The schema in {path!r}", shown, 1)
        raise CommandError(said.replace("The schema", shown, 1)) from None
