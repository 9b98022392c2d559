"""The page of a plan in a browser: every control moves what it should, to the numbers of the plans."""

import json
import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest

from dpselect import DPLogisticRegression, PrivacyLedger, StabilityGridSearchCV
from dpselect.preprocessing import tabular_pipeline

pytest.importorskip("PyQt6.QtWebEngineCore")

# Chromium as Qt brings it, in a process of its own, and what it is asked, one after the other: a script,
# a script of which a value is awaited in window.found, keys to press, or a file to print to
BROWSER = """
import json, os, sys
path, width, dark, asked = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "dark", json.load(sys.stdin)
os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["QTWEBENGINE_CHROMIUM_FLAGS"] = (
    f"--no-sandbox --disable-gpu --blink-settings=preferredColorScheme={0 if dark else 1}"
)
from PyQt6.QtCore import Qt, QTimer, QUrl
from PyQt6.QtTest import QTest
from PyQt6.QtWebEngineCore import QWebEnginePage
from PyQt6.QtWebEngineWidgets import QWebEngineView
from PyQt6.QtWidgets import QApplication

class Page(QWebEnginePage):
    said = []
    def javaScriptConsoleMessage(self, level, message, line, source):
        self.said.append(message)

app = QApplication(sys.argv[:1])
view = QWebEngineView()
page, answers = Page(view), []
view.setPage(page)
view.resize(width, 900)
view.show()

def answered(answer):
    answers.append(answer)
    ask()

def awaited(found):
    if found is None:
        QTimer.singleShot(100, lambda: page.runJavaScript("window.found", awaited))
    else:
        answered(found)

def ask():
    if not asked:
        print(json.dumps({"answers": answers, "console": page.said}))
        return app.quit()
    how, what = asked.pop(0)
    if how == "script":
        page.runJavaScript(what, answered)
    elif how == "await":
        page.runJavaScript("window.found = null; " + what + "; null", awaited)
    elif how == "keys":
        for key in what:
            QTest.keyClick(view.focusProxy(), getattr(Qt.Key, "Key_" + key))
        QTimer.singleShot(500, lambda: answered(None))
    else:
        page.pdfPrintingFinished.connect(lambda path, ok: answered(ok))
        page.printToPdf(what)

page.loadFinished.connect(lambda ok: ask())
page.load(QUrl.fromLocalFile(path))
QTimer.singleShot(60_000, lambda: app.exit(1))
sys.exit(app.exec())
"""
SHOWN = "document.querySelector('main').textContent"


SCHEMA = {"age": (0, 100), "job": list("abcdefgh"), "bmi": (10, 60)}


@pytest.fixture(scope="module")
def plan():
    model = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1]))
    example = np.array([[40, "a", 20]], dtype=object)
    return StabilityGridSearchCV(model, {}).plan(4000, 3, example=example)


@pytest.fixture(scope="module")
def page(plan):
    return plan.to_html()


@pytest.fixture(scope="module")
def grid(plan):
    return plan.to_grid()


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    made = PrivacyLedger(tmp_path_factory.mktemp("ledger") / "patients.ledger", epsilon=33.0)
    made.spend(0.5)
    return made


def answers(page, asked, tmp_path, width=1280, scheme="light"):
    (tmp_path / "plan.html").write_text(page, encoding="utf-8")
    argv = [sys.executable, "-c", BROWSER, str(tmp_path / "plan.html"), str(width), scheme]
    done = subprocess.run(argv, input=json.dumps(asked), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["console"] == []
    return found["answers"]


def setting(name, value):
    return (
        f"{{const i = document.getElementById('{name}'); i.value = {value};"
        f"i.dispatchEvent(new Event('input'));}} {SHOWN}"
    )


def band(cell):
    low, median, high = cell
    return f"{median} ({low} to {high})"


def half(width):
    return "too few" if width is None else f"± {width}"


def smallest(grid, at, end):
    """Return the smallest epsilon whose forecast reaches what is needed, as the page writes it."""
    axes = grid["axes"]
    plans = [plans[at["records"]][at["columns"]][at["delta"]] for plans in grid["plans"]]
    reached = [float(plan["reached"][at["share"]][at["reachable"]][end]) for plan in plans]
    enough = [e for e, x in zip(axes["epsilon"], reached) if x >= axes["target"][at["target"]]]
    return f"{enough[0]:g}" if enough else "none of 0.1 to 10"


def expected(grid, at):
    """Return all that a page shall show at a point of the grid."""
    epsilon, share, needed = at["epsilon"], at["share"], grid["axes"]["target"][at["target"]]
    cells = [plans[at["records"]][at["columns"]][at["delta"]] for plans in grid["plans"]]
    cell, found = cells[epsilon], grid["intervals"][epsilon]
    release = grid["releases"][epsilon]
    return [
        *(band(each) for other in cells for each in other["kept"][share]),
        *(band(other["reached"][share][at["reachable"]]) for other in cells),
        f"Expected AUC: {band(cell['reached'][share][at['reachable']])}",
        f"Smallest epsilon for AUC {needed:.2f}: {smallest(grid, at, 1)} as expected",
        f" as expected, {smallest(grid, at, 0)} at the low end",
        cell["statement"],
        cell["division"],
        *cell["quality"][share],
        *cell["advice"],
        f"length of the noise: {cell['signal']}.",
        *map(half, grid["evaluations"][epsilon][at["held"]][share].values()),
        *map(half, grid["groups"][epsilon][at["group"]].values()),
        *([found["why"]] if "why" in found else map(half, found.values())),
        f"at most {release['sure']} sure",
        *(f"{name}{count:,}" for name, count in release["carried"].items()),
        f"the ledger, {grid['ledger']}{cell['carried']:,}" if grid["ledger"] else "",
        *(f"{each['column']}: {each['times']}" for each in grid["without"][epsilon]),
    ]


def check_page(page, grid, tmp_path):
    """Check what a page shows at each end of each control against the grid."""
    axes, at = grid["axes"], dict(grid["start"])
    settings = [(name, end) for name in axes for end in (0, len(axes[name]) - 1)]
    texts = answers(page, [("script", setting(*each)) for each in settings], tmp_path)
    for (name, end), text in zip(settings, texts, strict=True):
        at[name] = end
        assert [said for said in expected(grid, at) if said not in text] == []
    # each control moves something
    assert all(first != last for first, last in zip(texts[::2], texts[1::2], strict=True))


@pytest.mark.slow
def test_every_control_moves_to_the_numbers_of_plans(plan, ledger, tmp_path):
    grid = plan.to_grid(ledger)
    check_page(plan.to_html(ledger), grid, tmp_path)
    # the numbers are those of a plan with other parameters, and of the ledger
    cell = grid["plans"][2][2][1][1]
    other = StabilityGridSearchCV(
        tabular_pipeline(
            SCHEMA,
            DPLogisticRegression(classes=[0, 1], delta=grid["axes"]["delta"][1]),
            columns=grid["columns"][: grid["axes"]["columns"][1]],
        ),
        {},
        epsilon=grid["axes"]["epsilon"][2],
    ).plan(grid["axes"]["records"][2], 3)
    first = other.expected_quality[0]
    assert cell["kept"][0][0] == [f"{part:.0%}" for part in (first.low, first.median, first.high)]
    assert cell["quality"][0] + cell["advice"] == list(other.advice)
    carried = [cells[0][0][0]["carried"] for cells in grid["plans"]]
    assert carried == [325, 162, 65, 32, 16, 6, 3] and ledger.spent()[0] == 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    "twin",
    [
        ("[at.records][at.columns]", "[0][at.columns]"),
        ("numbers.groups[at.epsilon][at.group]", "numbers.groups[at.epsilon][at.held]"),
        ("(of_share(plan.reached)[at.reachable])", "(of_share(plan.reached)[0])"),
        ("[at.reachable][end]) >=", "[at.reachable][end]) >"),
    ],
)
def test_a_twin_whose_controls_are_mixed_up_is_seen(page, grid, tmp_path, twin):
    mixed = page.replace(*twin)
    assert mixed != page
    with pytest.raises(AssertionError):
        check_page(mixed, grid, tmp_path)


def violations(page, tmp_path, *how):
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    script = "axe.run().then(r => { window.found = r.violations.map(v => v.id + ': ' + v.impact); })"
    (found,) = answers(page, [("await", f"{axe}; {script}")], tmp_path, *how)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_checker_of_accessibility_finds_nothing(page, tmp_path, width, scheme):
    pytest.importorskip("axe_playwright_python")
    assert violations(page, tmp_path, width, scheme) == []
    faint = page.replace("</style>", "p { color: #777; background: #888 } </style>")
    assert violations(faint, tmp_path, width, scheme) == ["color-contrast: serious"]


@pytest.mark.slow
def test_it_is_read_with_keys_alone_and_printed_on_two_pages(page, grid, tmp_path):
    from PyQt6.QtPdf import QPdfDocument

    at = ("script", "document.activeElement.id + ' ' + document.activeElement.value")
    asked = [
        *(("keys", ["Tab"]), at, ("keys", ["End"]), at, ("keys", ["Tab", "Left"]), at),
        ("script", SHOWN),
        ("print", str(tmp_path / "plan.pdf")),
    ]
    found = answers(page, asked, tmp_path)
    assert found[1:6:2] == ["epsilon 3", "epsilon 6", "records 0"]
    assert band(grid["plans"][6][0][-1][0]["kept"][0][0]) in found[6]
    document = QPdfDocument(None)
    document.load(str(tmp_path / "plan.pdf"))
    assert document.pageCount() == 2


@pytest.mark.slow
def test_a_page_is_small_and_needs_no_network(page):
    assert len(page.encode()) < 1e6 and "http" not in page and "src=" not in page
