"""Find the columns of a table that a parameter describes."""

from collections import Counter


def column_places(known, names, n_columns, what, read=None):
    """Return the positions in a table of the columns that a parameter `what` lists, by name or in order.

    `names` are those of the table, or None; then columns are known in their order. Known columns that
    are not in `read`, a dict, are ignored.
    """
    read = known if read is None else read
    if names is None:
        if len(known) != n_columns:
            raise ValueError(
                f"{what} says what is public of {len(known)} columns, and X has {n_columns} without "
                "names; give a dataframe, or write one entry for each column, in their order."
            )
        return [place for place, name in enumerate(known) if name in read]
    names = list(names)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(
            f"X has several columns of each of the names {twice}, and {what} cannot say what is public "
            "of which; give each column a name of its own, or leave out all but one."
        )
    extra = [name for name in names if name not in known]
    lacking = [name for name in read if name not in names]
    if extra or lacking:
        said = [f"says nothing of columns {extra} of X"] if extra else []
        said += [f"has columns {lacking} that X lacks"] if lacking else []
        only = f"give X[list({what})] (of an Arrow table X.select(list({what}))), or describe them"
        raise ValueError(
            f"{what} {' and '.join(said)}, and what is not known beforehand cannot be encoded; "
            f"{'write the same names in both' if lacking else only}."
        )
    return [names.index(name) for name in read]
