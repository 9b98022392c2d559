"""A document of sentences, lists and tables, as HTML, Markdown and JSON."""

import json
import math
import os
import re
from dataclasses import dataclass
from html import escape

from ..accounting.privacy_loss import PrivacyLoss
from ..ledger import is_ledger_file
from ..utils.type_aliases import PathLike

# no colours of its own, so that the report follows the browser's or notebook's theme
STYLE = """
.dpselect-report { font: 15px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 0 auto;
  overflow-wrap: anywhere; }
.dpselect-report h1 { font-size: 1.6em; line-height: 1.2; margin: 0 0 0.3em; }
.dpselect-report h2 { font-size: 1.15em; margin: 1.6em 0 0.4em; break-after: avoid; }
.dpselect-report p, .dpselect-report ul { margin: 0.5em 0; }
.dpselect-report ul { padding-left: 1.3em; }
.dpselect-report table { border-collapse: collapse; width: 100%; margin: 0.8em 0; font-size: 0.92em; }
.dpselect-report th, .dpselect-report td { text-align: left; vertical-align: top;
  padding: 0.25em 0.6em 0.25em 0; border-bottom: 1px solid rgba(128, 128, 128, 0.5); }
.dpselect-report th { overflow-wrap: normal; }
.dpselect-report td:first-child { min-width: 7em; }
.dpselect-report td:first-child:empty { height: 2.5em; }
.dpselect-report tr { break-inside: avoid; }
""".strip()
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 0; padding: 1.5rem 1rem; }}
@page {{ margin: 2cm; }}
@media print {{ :root {{ color-scheme: light; }} body {{ padding: 0; }} }}
</style>
</head>
<body>
{body}
</body>
</html>
"""

FORMS = {".html": "to_html", ".md": "to_markdown", ".json": "to_json"}


@dataclass(frozen=True)
class Table:
    """A table of texts: `head` has the names of the columns, and each row a cell for each."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """A title with its contents: sentences (str), lists (tuple of str) and tables (Table)."""

    title: str
    blocks: tuple[str | tuple[str, ...] | Table, ...]


@dataclass(frozen=True, repr=False)
class PrivacyReport:
    """A privacy statement to be read, signed and kept: see :func:`~dpselect.privacy_report`.

    Parameters
    ----------
    title : str
    date : str
        Of the report, as ISO 8601 writes it.
    privacy : PrivacyLoss
        What the release spent.
    sections : tuple of Section
        All that is said, in its order.

    Examples
    --------
    >>> from dpselect import PrivacyLoss
    >>> from dpselect.report import PrivacyReport, Section
    >>> section = Section("Budget", ("Nothing is left.",))
    >>> report = PrivacyReport("A report", "2030-01-31", PrivacyLoss(1.0), (section,))
    >>> print(report)
    # A report
    <BLANKLINE>
    2030-01-31
    <BLANKLINE>
    ## Budget
    <BLANKLINE>
    Nothing is left.
    """

    title: str
    date: str
    privacy: PrivacyLoss
    sections: tuple[Section, ...]

    def to_html(self) -> str:
        """Return a page that opens and prints without network.

        Returns
        -------
        str
        """
        return PAGE.format(title=_html(self.title), body=self._repr_html_())

    def to_markdown(self) -> str:
        """Return the report as Markdown, with tables as on GitHub.

        Returns
        -------
        str
        """
        return self._rendered(_MARKDOWN, "\n\n").strip()

    def to_json(self) -> str:
        """Return the report as JSON, for programs.

        Returns
        -------
        str
            An object with "title", "date", "privacy" (as ``PrivacyLoss.to_dict`` has it, an infinite
            epsilon as "inf") and "sections", each a "title" and "blocks": texts, lists of texts, and
            objects with "head" and "rows".
        """

        def block(found):
            return {"head": found.head, "rows": found.rows} if isinstance(found, Table) else found

        sections = [
            {"title": section.title, "blocks": [block(found) for found in section.blocks]}
            for section in self.sections
        ]
        said = {
            "title": self.title,
            "date": self.date,
            "privacy": _finite(self.privacy.to_dict()),
            "sections": sections,
        }
        return json.dumps(said, allow_nan=False, indent=1)

    def save(self, path: PathLike) -> None:
        """Write the report into a file, in the format of its ending.

        Parameters
        ----------
        path : str or path-like
            Ends in .html, .md or .json. A file that is there is replaced, unless it is that of a ledger.

        Raises
        ------
        ValueError
            If it ends in something else; nothing is written.
        FileExistsError
            If it is that of a ledger, which stays.
        OSError
            If the file cannot be written.
        """
        text = getattr(self, form_of(path))()
        if is_ledger_file(path):
            raise FileExistsError(
                f"The file at {os.fspath(path)} is that of a ledger, or of another database of SQLite, "
                "and what was counted is not replaced; give another path."
            )
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)

    def _repr_html_(self):
        body = self._rendered(_HTML, "\n")
        return f"<article class='dpselect-report'>\n<style>\n{STYLE}\n</style>\n{body}\n</article>"

    def __str__(self):
        return self.to_markdown()

    def __repr__(self):
        return f"<PrivacyReport of {self.date}: epsilon = {self.privacy.epsilon:.6g}>"

    def _rendered(self, writer, between):
        kinds = {str: writer.text, tuple: writer.items, Table: writer.table}
        parts = [writer.title(self.title), writer.text(self.date)]
        for section in self.sections:
            parts.append(writer.heading(section.title))
            parts += [kinds[type(block)](block) for block in section.blocks]
        return between.join(parts)


def form_of(path):
    """Return the name of the method that writes a report in the format of a path's ending."""
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in FORMS:
        raise ValueError(
            f"path ends in {ending!r}, which is no form of a report; end it in .html, .md or .json."
        )
    return FORMS[ending]


def printable(text):
    """Return a text on one line, with everything that is not printable escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _html(text):
    return escape(printable(text))


def _broken(text):
    """Break a text after the parts of a name, and inside of a number only if necessary."""
    return re.sub(r"(?<=_)(?=\w)|(?<=\.)(?=[^\W\d])|(?<=[a-z])(?=[A-Z])", "<wbr>", _html(text))


class _HTML:
    """Parts of a document as HTML."""

    @staticmethod
    def title(text):
        return f"<h1>{_html(text)}</h1>"

    @staticmethod
    def heading(text):
        return f"<h2>{_html(text)}</h2>"

    @staticmethod
    def text(text):
        return f"<p>{_html(text)}</p>"

    @staticmethod
    def items(texts):
        return "<ul>" + "".join(f"<li>{_html(text)}</li>" for text in texts) + "</ul>"

    @staticmethod
    def table(table):
        def row(cells, tag):
            return "<tr>" + "".join(f"<{tag}>{_broken(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in table.rows)
        return f"<table><thead>{row(table.head, 'th')}</thead><tbody>{body}</tbody></table>"


def _mark(text):
    """Escape a text for Markdown and HTML."""
    return re.sub(r"([\\`*_{}\[\]<>|~#!&])", r"\\\1", printable(text))


class _MARKDOWN:
    """Parts of a document as Markdown."""

    @staticmethod
    def title(text):
        return f"# {_mark(text)}"

    @staticmethod
    def heading(text):
        return f"## {_mark(text)}"

    @staticmethod
    def text(text):
        return _mark(text)

    @staticmethod
    def items(texts):
        return "\n".join(f"- {_mark(text)}" for text in texts)

    @staticmethod
    def table(table):
        rows = [[_mark(cell) for cell in row] for row in (table.head, *table.rows)]
        rows.insert(1, ["---"] * len(table.head))
        return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _finite(said):
    """Replace infinite numbers of a statement by "inf", which JSON needs."""
    if isinstance(said, dict):
        return {key: _finite(value) for key, value in said.items()}
    if isinstance(said, list):
        return [_finite(value) for value in said]
    return "inf" if said == math.inf else said
