"""The page of a plan in a browser: every control moves what it should, to the numbers of the plans."""

import json
import subprocess
import sys

import numpy as np
import pytest

from dpselect import DPLogisticRegression, StabilityGridSearchCV
from dpselect.preprocessing import tabular_pipeline

pytest.importorskip("PyQt6.QtWebEngineCore")

# Chromium as Qt brings it, in a process of its own: a page, settings of its controls, what it shows then
BROWSER = """
import json, os, sys
os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["QTWEBENGINE_CHROMIUM_FLAGS"] = "--no-sandbox --disable-gpu"
from PyQt6.QtCore import QTimer, QUrl
from PyQt6.QtWebEngineCore import QWebEnginePage
from PyQt6.QtWidgets import QApplication

class Page(QWebEnginePage):
    said = []
    def javaScriptConsoleMessage(self, level, message, line, source):
        self.said.append(message)

app, page = QApplication(sys.argv), Page()
settings, shown = json.loads(sys.argv[2]), []
SHOW = "document.querySelector('main').textContent"

def ask():
    if not settings:
        print(json.dumps({"shown": shown, "console": page.said}))
        return app.quit()
    script = "".join(
        f"{{const i = document.getElementById('{name}'); i.value = {value};"
        "i.dispatchEvent(new Event('input'));}"
        for name, value in settings.pop(0).items()
    )
    page.runJavaScript(script + SHOW, lambda text: (shown.append(text), ask()))

page.loadFinished.connect(lambda ok: ask())
page.load(QUrl.fromLocalFile(sys.argv[1]))
QTimer.singleShot(60_000, lambda: app.exit(1))
sys.exit(app.exec())
"""


@pytest.fixture(scope="module")
def plan():
    schema = {"age": (0, 100), "job": list("abcdefgh"), "bmi": (10, 60)}
    model = tabular_pipeline(schema, DPLogisticRegression(classes=[0, 1]))
    example = np.array([[40, "a", 20]], dtype=object)
    return StabilityGridSearchCV(model, {}, epsilon=1.0).plan(4000, 3, example=example)


def shown(page, settings, tmp_path):
    (tmp_path / "plan.html").write_text(page, encoding="utf-8")
    argv = [sys.executable, "-c", BROWSER, str(tmp_path / "plan.html"), json.dumps(settings)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def check_page(page, grid, tmp_path):
    """Check what a page shows at each end of each control against the grid."""
    axes, start = grid["axes"], grid["start"]
    settings = [{name: end} for name in axes for end in (0, len(axes[name]) - 1)]
    found = shown(page, settings, tmp_path)
    assert found["console"] == []
    at = dict(start)
    for setting, text in zip(settings, found["shown"], strict=True):
        at |= setting
        cell = grid["plans"][at["epsilon"]][at["records"]][at["columns"]][at["delta"]]
        for low, median, high in cell["kept"][at["share"]]:
            assert f"{median} ({low} to {high})" in text
        assert cell["statement"] in text and all(line in text for line in cell["advice"])
        widths = grid["evaluations"][at["epsilon"]][at["held"]]["all"][at["share"]]
        for width in widths.values():
            assert ("too few" if width is None else f"± {width}") in text
        for budget, count in grid["releases"][at["epsilon"]].items():
            assert not budget.startswith("of ") or f"{count:,}" in text
    # each control moves something
    texts = found["shown"]
    assert all(first != last for first, last in zip(texts[::2], texts[1::2], strict=True))


@pytest.mark.slow
def test_every_control_moves_to_the_numbers_of_plans(plan, tmp_path):
    check_page(plan.to_html(), plan.to_grid(), tmp_path)


@pytest.mark.slow
def test_a_twin_whose_controls_are_mixed_up_is_seen(plan, tmp_path):
    page = plan.to_html()
    mixed = page.replace("[at.epsilon][at.records]", "[at.epsilon][0]")
    assert mixed != page
    with pytest.raises(AssertionError):
        check_page(mixed, plan.to_grid(), tmp_path)
