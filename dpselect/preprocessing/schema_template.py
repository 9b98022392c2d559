"""A schema to fill in."""

from collections.abc import Iterable


def schema_template(columns: Iterable[str]) -> dict[str, None]:
    """Return a schema to fill in, from the header of a table.

    Parameters
    ----------
    columns : iterable of str
        Names of the columns, such as ``frame.columns``.

    Returns
    -------
    dict
        From each name to None, in whose place you write bounds or categories: see
        :class:`PublicSchema`.

    Raises
    ------
    ValueError
        If a name comes twice.

    Examples
    --------
    >>> import json
    >>> from dpselect.preprocessing import schema_template
    >>> print(json.dumps(schema_template(["age", "job"])))
    {"age": null, "job": null}
    """
    names = list(columns)
    template = dict.fromkeys(names)
    if isinstance(columns, str) or len(template) < len(names):
        raise ValueError(
            f"columns={names!r} are not different names, so two columns would share one entry; write a "
            "list with one name for each column."
        )
    return template
