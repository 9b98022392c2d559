"""The forms of a report: HTML, Markdown and JSON, whatever names it has to show."""

import json
import re
from html.parser import HTMLParser

import pytest

from dpselect import PrivacyLoss
from dpselect.report import PrivacyReport, Section, Table

EVIL = "<script>alert('a')</script> & \"b\" | `c` *d* [e](f) \n# g \x1b[31m \u202e"
REPORT = PrivacyReport(
    EVIL,
    "2030-01-31",
    PrivacyLoss(float("inf")),
    (Section(EVIL, (EVIL, (EVIL, "second"), Table((EVIL, "head"), ((EVIL, "1"), ("2", ""))))),),
)


class Page(HTMLParser):
    """Tags that were not closed, all tags and attributes, and the text."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_html_is_closed_and_escaped():
    page = Page(REPORT.to_html())
    assert not page.open and "script" not in page.tags
    # at its title twice, in the heading, the text, the list and two cells
    assert sum("<script>alert('a')</script> & \"b\"" in text for text in page.text) == 7
    assert page.tags.count("tr") == 3 and page.tags.count("li") == 2


def test_html_needs_no_network_and_fits_small_screens():
    html = REPORT.to_html()
    names = {name for name, _ in Page(html).attributes}
    assert not names & {"src", "href", "srcset", "data"} and "url(" not in html and "@import" not in html
    assert "width=device-width" in html and "overflow-wrap: anywhere" in html
    assert "light dark" in html


def test_a_notebook_shows_no_page_within_a_page():
    assert set(Page(REPORT._repr_html_()).tags).isdisjoint({"html", "body", "meta"})
    assert "body {" not in REPORT._repr_html_()


def test_markdown_has_whole_tables_and_no_elements():
    lines = REPORT.to_markdown().splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 4 and {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}
    # nothing breaks a line, opens an element, or a link, or a code
    assert sum(line.startswith("#") for line in lines) == 2
    assert not any(re.search(r"(?<!\\)[<`*\[]", line) for line in lines)
    assert str(REPORT) == REPORT.to_markdown()


def test_json_has_all_of_it():
    said = json.loads(REPORT.to_json())
    assert said["title"] == EVIL and said["privacy"]["epsilon"] == "inf"
    text, items, table = said["sections"][0]["blocks"]
    assert (text, items) == (EVIL, [EVIL, "second"])
    assert table == {"head": [EVIL, "head"], "rows": [[EVIL, "1"], ["2", ""]]}


def test_control_characters_are_shown_and_not_sent():
    for text in (REPORT.to_html(), REPORT.to_markdown(), repr(REPORT)):
        assert "\x1b" not in text and "\u202e" not in text


@pytest.mark.parametrize("ending", [".html", ".md", ".json", ".HTML"])
def test_files_by_their_ending(tmp_path, ending):
    path = tmp_path / f"report{ending}"
    REPORT.save(path)
    forms = {".html": REPORT.to_html, ".md": REPORT.to_markdown, ".json": REPORT.to_json}
    assert path.read_text(encoding="utf-8") == forms[ending.lower()]()


@pytest.mark.parametrize("name", ["report.pdf", "report", "report.html.gz"])
def test_other_endings_are_refused_and_nothing_is_written(tmp_path, name):
    with pytest.raises(ValueError, match="path ends in .*; end it in .html, .md or .json"):
        REPORT.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_names_in_tables_are_broken_after_their_parts():
    name = "best_estimator_.model: DPLogisticRegression"
    table = Table(("Part",), ((name,),))
    html = PrivacyReport("A", "2030-01-31", PrivacyLoss(1.0), (Section("B", (table,)),)).to_html()
    assert "best_<wbr>estimator_.<wbr>model: DPLogistic<wbr>Regression" in html
    assert name in "".join(Page(html).text)
