"""Ask the search of the built documentation what readers ask, and say which page comes first.

Run ``python benchmarks/documentation_search.py doc/_build`` once the documentation is built from the
start: of pages that Sphinx does not read again it forgets the entries of the index. Sphinx's own program
answers, in Chromium as ``pyqt6-webengine`` brings it. The script ends with 1 if more than one answer is
wrong.
"""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QTWEBENGINE_CHROMIUM_FLAGS", "--no-sandbox --disable-gpu")

# what is asked -> the pages that answer it
QUERIES = {
    "survey weights": {"survey_weights"},
    "feature importance": {"intervals"},
    "confidence interval": {"intervals"},
    "fbeta": {"evaluation"},
    "ICD codes": {"weak_model", "tables", "categories"},
    "yearly report": {"yearly_report"},
    "recall at a rate": {"thresholds"},
    "several rows per patient": {"persons"},
    "delta": {"epsilon", "delta", "weak_model"},
    "GridSearchCV": {"migrating", "tuning"},
    "missing values": {"dates_and_gaps", "tables"},
    "Dask": {"beyond_memory", "big_tables"},
    "ONNX": {"export"},
    "threshold": {"thresholds"},
}
# the pages of the results, the best one last; null as long as the index is not loaded
ASK = """JSON.stringify(typeof Search == "object" && Search._index
    ? %s.map(query => Search._performSearch(...Search._parseQuery(query)).map(result => result[0]))
    : null)"""


def answers(folder, queries):
    """Return {query: names of the pages that the search lists, the best one first}."""
    from PyQt6.QtCore import QTimer, QUrl
    from PyQt6.QtWebEngineCore import QWebEnginePage
    from PyQt6.QtWidgets import QApplication

    app, page, found = QApplication(sys.argv[:1]), QWebEnginePage(), {}

    def ask():
        page.runJavaScript(ASK % json.dumps(list(queries)), read)

    def read(answer):
        pages = json.loads(answer or "null")
        if pages is None:
            QTimer.singleShot(200, ask)
        else:
            found.update((query, [*dict.fromkeys(names[::-1])]) for query, names in zip(queries, pages))
            app.quit()

    page.loadFinished.connect(lambda ok: ask())
    page.load(QUrl.fromLocalFile(str(Path(folder).resolve() / "search.html")))
    QTimer.singleShot(100_000, app.quit)
    app.exec()
    return found


def main(folder):
    """Print a line for each query, and return how many answers are wrong."""
    wrong, found = 0, answers(folder, QUERIES)
    for query in QUERIES:
        pages = found[query]
        right = bool(QUERIES[query] & set(pages[:1]))
        rank = min((i + 1 for i, name in enumerate(pages) if name in QUERIES[query]), default="none")
        wrong += not right
        print(f"{query:26} {'right' if right else 'WRONG'}  {', '.join(pages[:3])}  (rank {rank})")
    print(f"{len(QUERIES) - wrong} of {len(QUERIES)} right")
    return wrong


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) > 1)
