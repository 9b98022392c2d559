"""Make the pictures of a plan's page for the documentation, as Chromium shows it, light and dark.

Run ``python benchmarks/plan_page_picture.py``; it needs PyQt6-WebEngine.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "doc" / "images"
WIDTH, HEIGHT = 1280, 760
SCHEMA = {
    "age": (18, 100),
    "sex": ["f", "m"],
    "smokes": ["yes", "no"],
    "bmi": {"bounds": (15, 50), "missing": True},
    "earlier stays": (0, 10),
    "admission": ["planned", "emergency", "transfer"],
    "chapter": list("ABCDEFGHIJKL"),
    "ward": [f"ward {i}" for i in range(1, 16)],
}


def page():
    from dpselect import DPLogisticRegression, StabilityGridSearchCV
    from dpselect.preprocessing import tabular_pipeline

    model = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1]))
    return StabilityGridSearchCV(model, {}, epsilon=0.5).plan(20_000, len(SCHEMA)).to_html()


def take(path, out):
    """Take the picture of a page; in a process of its own, as Chromium is told a scheme once."""
    from PyQt6.QtCore import QTimer, QUrl
    from PyQt6.QtWebEngineCore import QWebEngineSettings
    from PyQt6.QtWebEngineWidgets import QWebEngineView
    from PyQt6.QtWidgets import QApplication

    app = QApplication(sys.argv[:1])
    view = QWebEngineView()
    view.settings().setAttribute(QWebEngineSettings.WebAttribute.ShowScrollBars, False)
    view.resize(WIDTH, HEIGHT)
    view.show()

    def shoot():
        view.grab().save(out)
        app.quit()

    view.loadFinished.connect(lambda ok: QTimer.singleShot(1000, shoot))
    view.load(QUrl.fromLocalFile(path))
    app.exec()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        take(*sys.argv[1:])
        sys.exit()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.html"
        path.write_text(page(), encoding="utf-8")
        for number, ending in ((1, ""), (0, "-dark")):
            flags = f"--no-sandbox --disable-gpu --blink-settings=preferredColorScheme={number}"
            env = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "QTWEBENGINE_CHROMIUM_FLAGS": flags}
            out = FOLDER / f"plan-page{ending}.png"
            subprocess.run([sys.executable, __file__, str(path), str(out)], env=env, check=True)
