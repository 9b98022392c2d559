"""The pictures of the documentation: every example runs, without a warning."""

import runpy
from pathlib import Path

import matplotlib
import pytest

GALLERY = Path(__file__).parents[1] / "doc" / "gallery"
EXAMPLES = sorted(GALLERY.rglob("plot_*.py"))


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, monkeypatch, capsys):
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)  # which warns that Agg shows nothing
    try:
        namespace = runpy.run_path(str(example))
        assert namespace["__doc__"].split("\n")[2].startswith("===")  # the title of the page
        assert plt.get_fignums()
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()
    finally:
        plt.close("all")
