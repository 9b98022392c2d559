"""The page of a plan: one file with controls, for those who decide before any record is read."""

import json
from datetime import date
from html import escape
from importlib.resources import files
from string import Template

from .quality_forecast import WORDS

FILL = "position:absolute;top:0;bottom:0;background:"
BAR = (
    '<div style="position:relative;height:1.2em;background:rgba(128,128,128,.15);max-width:30em">'
    f'<i style="{FILL}#4a7dbd;left:{{low:.0%}};width:{{width:.0%}}"></i>'
    f'<b style="{FILL}currentColor;left:{{median:.0%}};width:3px"></b></div>'
)


def page_of(grid, ledger=None):
    """Return the page of a PlanGrid as HTML: it needs no network, and its script computes no number.

    Parameters
    ----------
    grid : PlanGrid
    ledger : PrivacyLedger, default=None

    Returns
    -------
    str
    """
    numbers = grid.to_dict(ledger)
    template = Template(files(__package__).joinpath("plan_page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(f"Plan of a private {type(grid.model).__name__}"),
        unit=numbers["unit"],
        date=date.today().isoformat(),
        about=f"{grid.n_training:,} {numbers['unit']} that train, {grid.n_features} columns.",
        table=_table(numbers),
        # so that no text of a schema ends the script
        numbers=json.dumps(numbers, allow_nan=False).replace("<", "\\u003c"),
    )


def picture_of(plan):
    """Return a plan for notebooks: its forecasts as bars, and its words."""
    bars = [
        f"<div>{escape(str(each))}</div>"
        + BAR.format(low=each.low, width=each.high - each.low, median=each.median)
        for each in plan.expected_quality
    ]
    head = "<div>Expected to be kept, of the gain over a constant without privacy:</div>" if bars else ""
    said = f"<pre style='white-space:pre-wrap'>{escape(str(plan.without_comparison()))}</pre>"
    return f"<div>{head}{''.join(bars)}{said}</div>"


def _table(numbers):
    """Return the forecast of the search as it was given, for each epsilon, as an HTML table."""
    start, axes = numbers["start"], numbers["axes"]
    head = [
        "epsilon",
        *(f"kept of the {WORDS[metric]}" for metric in numbers["metrics"]),
        "at most so sure",
    ]
    rows = []
    for i, epsilon in enumerate(axes["epsilon"]):
        plan = numbers["plans"][i][start["records"]][start["columns"]][start["delta"]]
        bands = [f"{median} ({low} to {high})" for low, median, high in plan["kept"][start["share"]]]
        rows.append([f"{epsilon:g}", *bands, numbers["releases"][i]["sure"]])
    cells = [
        f"<th scope=row>{row[0]}</th>" + "".join(f"<td>{escape(c)}</td>" for c in row[1:])
        for row in rows
    ]
    top = "".join(f"<th scope=col>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{line}</tr>" for line in cells)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
