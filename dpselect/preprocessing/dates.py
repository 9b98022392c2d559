"""Dates in a table: days since a public one."""

from datetime import date, datetime

import numpy as np


def read_dates(entry, wrong):
    """Return the entry of a column of dates as one of days, and the first date and the form of texts."""
    ends = entry.pop("date")
    form = entry.pop("format", None)
    if not isinstance(form, str | None):
        wrong.append("its 'format' is no text")
    try:
        first, last = map(date.fromisoformat, ends)
    except (TypeError, ValueError):
        wrong.append(
            'its \'date\' is not the first and the last one, such as ["2015-01-01", "2026-12-31"]'
        )
        return {**entry, "bounds": [0, 1]}, None
    if first >= last:
        wrong.append("its first date is not before its last one")
        return {**entry, "bounds": [0, 1]}, None
    unit = {"unit": f"days since {first}"}
    return {**unit, **entry, "bounds": [0, (last - first).days]}, (str(first), form)


def as_days(values, first, form=None):
    """Return cells with the days since a date in place of dates; all others stay as they are.

    Parameters
    ----------
    values : ndarray of shape (n,)
    first : str
        As ISO 8601 writes it.
    form : str, default=None
        Of texts, as for ``datetime.strptime``; None is ISO 8601, with or without a time.
    """
    if values.dtype.kind in "biuf":
        return values
    origin, known = date.fromisoformat(first).toordinal(), {}

    def days(cell):
        if isinstance(cell, np.datetime64):
            cell = cell.astype("M8[D]").item()
        if isinstance(cell, date) and cell == cell:  # NaT is a date
            return cell.toordinal() - origin
        if isinstance(cell, str):
            if cell not in known:
                known[cell] = _parsed(cell.strip(), form, origin)
            return known[cell]
        return cell

    return np.array(
        [*map(days, values.tolist() if values.dtype == object else values), None], dtype=object
    )[:-1]


def _parsed(text, form, origin):
    try:
        found = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
    except ValueError:  # a gap, a number of days, or what will be refused
        return text
    return found.toordinal() - origin
