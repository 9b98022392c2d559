"""Every sentence of the report of a ledger is true."""

import datetime
from dataclasses import replace

import pytest

from dpselect import DPLogisticRegression, PrivacyLedger, PrivacyLoss, privacy_report
from dpselect.report import ledger_report
from dpselect.report.document import Table

DAY = datetime.date(2030, 1, 31)
TITLES = [
    "What was released",
    "Who is protected",
    "What is left",
    "What all releases cost together",
    "What is not covered",
    "Signature",
]


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.ledger", epsilon=3.0, delta=1e-6, user="statistics")


def section(report, title):
    (found,) = [part for part in report.sections if part.title == title]
    return found.blocks


def tables(report, title):
    return [block for block in section(report, title) if isinstance(block, Table)]


def fill(ledger):
    PrivacyLedger(ledger.path, user="Ana").spend(0.125, label="a table")
    ledger.spend(0.5, 1e-7, label="ages, by hand")
    ledger.reserve(1.0, label="a path").commit(PrivacyLoss(0.25, kind="ex-post", seeded=True))
    ledger.reserve(0.125, label="a crash")


def check_report(ledger):
    """Compare a report with its ledger: what was released when and for whom, what is left, the sum."""
    report = privacy_report(ledger, about="Admissions", date=DAY)
    entries = ledger.history()
    assert [part.title for part in report.sections] == TITLES
    assert report.title == "Privacy budget: patients.ledger" and report.date == "2030-01-31"
    spent = ledger.spent()
    assert (report.privacy.epsilon, report.privacy.delta) == spent
    every, years, users = tables(report, "What was released")
    assert [row[:1] + row[2:6] for row in every.rows] == [
        (str(e.id), e.user, e.label, f"{e.epsilon:.6g}", f"{e.delta:.6g}") for e in entries
    ]
    assert [row[1] for row in every.rows] == [e.reserved_at.date().isoformat() for e in entries]
    assert sum(int(row[1]) for row in years.rows) == len(entries)
    assert sum(float(row[2]) for row in years.rows) == pytest.approx(spent[0], rel=1e-5)
    assert sum(int(row[1]) for row in users.rows) == len(entries)
    assert sum(float(row[2]) for row in users.rows) == pytest.approx(spent[0], rel=1e-5)
    assert [row[0] for row in users.rows] == sorted({entry.user for entry in entries})
    (left,) = tables(report, "What is left")
    assert left.rows[2] == ("Left", *(f"{amount:.6g}" for amount in ledger.remaining()))
    (together,) = tables(report, "What all releases cost together")
    deltas = sorted({*ledger_report.DELTAS, *filter(None, [ledger.budget[1]])})
    for (at, told), delta in zip(together.rows, deltas, strict=True):
        assert float(at) == delta
        if delta < spent[1]:
            assert told == "none: more than this delta was spent"
        else:
            assert float(told) == pytest.approx(ledger.total(delta), rel=1e-5)
    return report


def test_it_says_what_the_ledger_says(ledger):
    fill(ledger)
    report = check_report(ledger)
    said = str(report)
    assert "The records: Admissions." in said and "1 uncommitted" in said
    assert "Ex-post: " in said and "Seeded: " in said and report.privacy.seeded
    assert "An epsilon of 0: " not in said
    ledger.reserve(1.0, label="intervals").commit(PrivacyLoss(0.0))
    assert "An epsilon of 0: nothing was told" in str(check_report(ledger))
    assert report.privacy.kind == "ex-post"
    assert "Protected is each record" in said and "replace one record" in said
    assert str(ledger.path) not in report.to_html()


def test_a_report_that_leaves_an_entry_out_is_caught(ledger, monkeypatch):
    fill(ledger)
    original = ledger_report.ledger_loss
    monkeypatch.setattr(
        "dpselect.report.statement.ledger_loss", lambda ledger: replace(original(ledger), epsilon=0.5)
    )
    with pytest.raises(AssertionError):
        check_report(ledger)


def test_of_many_releases_the_sum_at_a_delta_is_less(tmp_path):
    ledger = PrivacyLedger(tmp_path / "patients.ledger", epsilon=20.0)
    for _ in range(100):
        ledger.spend(0.1)
    report = check_report(ledger)
    (together,) = tables(report, "What all releases cost together")
    assert float(together.rows[1][1]) < 6 and "uncommitted" not in str(report)


@pytest.mark.parametrize("composition", ["sum", "renyi"])
def test_years_are_what_their_entries_add(tmp_path, composition, monkeypatch):
    """Of a ledger that counts otherwise than by sums, what entries add to it."""
    ledger = PrivacyLedger(tmp_path / "patients.ledger", 5.0, 1e-6, composition=composition)
    for _ in range(3):
        ledger.spend(0.2)
    entries = ledger.history()
    moved = [
        replace(entry, reserved_at=entry.reserved_at.replace(year=year))
        for entry, year in zip(entries, (2028, 2028, 2029))
    ]
    monkeypatch.setattr(PrivacyLedger, "history", lambda self: moved)
    rows = tables(privacy_report(ledger), "What was released")[1].rows
    assert [row[:2] for row in rows] == [("2028", "2"), ("2029", "1")]
    assert sum(float(row[2]) for row in rows) == pytest.approx(ledger.spent()[0], rel=1e-5)


def test_an_empty_ledger_and_one_of_persons(tmp_path):
    ledger = PrivacyLedger(
        tmp_path / "persons.ledger", epsilon=1.0, adjacency="replace all rows of one person"
    )
    report = privacy_report(ledger)
    said = str(report)
    assert "Nothing was released yet." in said and "Nothing was spent." in said
    assert "Protected is each person" in said and report.privacy.epsilon == 0.0


def test_what_goes_with_a_model_is_refused(ledger, tmp_path):
    for given in ({"ledger": ledger}, {"evaluation": 3}):
        with pytest.raises(TypeError, match="ledger|evaluation"):
            privacy_report(ledger, **given)
    model = DPLogisticRegression(classes=[0, 1]).fit([[0.1], [0.2]] * 5, [0, 1] * 5)
    assert privacy_report(model, ledger).title == "Privacy statement: DPLogisticRegression"
