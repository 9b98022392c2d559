"""Dates in a table: days since a public one."""

from datetime import date, datetime

import numpy as np

from .table_cells import as_number
from .table_form import NUMERIC_TYPES

# more days than these, 2700 years, are a number of another kind: 20150131 is a date, and 1022015, which
# programs make of 01.02.2015, is refused
LAST = 10**6
NO_DATE = "no date"
# days of what comes round, a day on which it begins, and what a picture says: of a year the mean length
CYCLES = {
    "year": (365.2425, date(2000, 1, 1), "day of the year"),
    "week": (7.0, date(2000, 1, 3), "days since Monday"),
    "day": (1.0, date(2000, 1, 1), "fraction of the day"),
}
SECONDS = 86_400


def read_dates(entry, wrong):
    """Return the entry of a column of dates as one of days, and what else is known of the dates."""
    ends, cycles = entry.pop("date"), entry.pop("cycles", [])
    listed = isinstance(cycles, (list, tuple)) and all(isinstance(cycle, str) for cycle in cycles)
    if not listed or set(cycles) - set(CYCLES) or len(set(cycles)) < len(cycles):
        wrong.append(f"its 'cycles' is no list of some of {[*CYCLES]}, each once")
        cycles = []
    form = entry.pop("format", None)
    if not isinstance(form, str | None):
        wrong.append("its 'format' is no text")
    elif form is not None and is_number_format(form):
        wrong.append(
            "its 'format' has digits alone, and a table may hold those as numbers, which are days; "
            "write dates with marks between, or as %Y%m%d"
        )
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
    days = (last - first).days + ("day" in cycles)  # to midnight, where hours count
    return {**unit, **entry, "bounds": [0, days]}, (str(first), form, tuple(cycles))


def phase(first, cycle):
    """Return the days from the last beginning of a cycle to a date."""
    length, begin, _ = CYCLES[cycle]
    return (date.fromisoformat(first) - begin).days % length


def is_number_format(form):
    """Return whether a format writes dates as numbers that are read as days, unlike 20150131."""
    return form != "%Y%m%d" and date(2015, 1, 31).strftime(form).isdigit()


def first_day(first, form):
    """Return a date as texts of a form write it."""
    return date.fromisoformat(first).strftime(form or "%Y-%m-%d")


def gaps_of_dates(missing_values, first, form=None):
    """Return the days of those cells that mean a gap and are dates, such as "1900-01-01"."""
    cells = np.array([*missing_values, None], dtype=object)
    days = [as_days(cells, first, kind) for kind in (form, None)]
    return {day for day in np.concatenate(days).tolist() if isinstance(day, int)}


def as_days(values, first, form=None, codes=(), hours=False):
    """Return cells with the days since a date in place of dates; all others stay as they are.

    Parameters
    ----------
    values : ndarray of shape (n,)
    first : str
        As ISO 8601 writes it.
    form : str, default=None
        Of texts, as for ``datetime.strptime``; None is ISO 8601, with or without a time.
    codes : collection of float, default=()
        Numbers that mean a gap, such as 99999999, and stay.
    hours : bool, default=False
        Whether the time is the fraction of a day; else it is left out.
    """
    origin, known = date.fromisoformat(first).toordinal(), {}
    if values.dtype.kind in "biuf":
        large = np.abs(values) > LAST
        if not large.any():
            return values
        cells = values.astype(object)
        cells[large] = [_of_number(x, origin, codes) for x in values[large].tolist()]
        return cells

    def days(cell):
        if isinstance(cell, np.datetime64):
            cell = cell.astype("M8[us]" if hours else "M8[D]").item()
        if isinstance(cell, date) and cell == cell:  # NaT is a date
            return _since(cell, origin, hours)
        if isinstance(cell, str):
            if cell not in known:
                known[cell] = _parsed(cell.strip(), form, origin, codes, hours)
            return known[cell]
        return _of_number(as_number(cell), origin, codes) if isinstance(cell, NUMERIC_TYPES) else cell

    return np.array(
        [*map(days, values.tolist() if values.dtype == object else values), None], dtype=object
    )[:-1]


def _of_number(x, origin, codes):
    """Return a number of days, or that of a date such as 20150131."""
    if not abs(x) > LAST or x in codes:
        return x
    text = f"{x:.0f}"
    return _parsed(text, "%Y%m%d", origin, codes) if len(text) == 8 else NO_DATE


def _since(day, origin, hours=False):
    days = max(-LAST, min(day.toordinal() - origin, LAST))  # 9999-12-31 means a date without an end
    if not hours or not isinstance(day, datetime):
        return days
    return days + (day.hour * 3600 + day.minute * 60 + day.second + day.microsecond / 1e6) / SECONDS


def _parsed(text, form, origin, codes, hours=False):
    try:
        found = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
    except ValueError:  # a gap, a number of days, or what will be refused
        days = as_number(text)
        return NO_DATE if days is not None and abs(days) > LAST and days not in codes else text
    return _since(found, origin, hours)
