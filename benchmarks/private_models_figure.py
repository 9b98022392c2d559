"""Accuracy against epsilon, from results of private_models.py: the figure of the README and of the docs.

Run ``python benchmarks/private_models_figure.py``. It reads
``results/private_models.csv``, which private_models.py wrote, and draws one panel for each footing, on a
light and on a dark page: means over the tables of two classes with five splits.
"""

import argparse
import math
from pathlib import Path

import matplotlib
from _peers import METHODS
from private_models import KEY, key_of, read

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

TABLES = ("adult", "affairs", "churn", "credit", "deaths", "magic")
HERE = Path(__file__).parent
RESULTS, IMAGES = HERE / "results" / "private_models.csv", HERE.parent / "doc" / "images"
# method -> name in the legend, colour (Okabe and Ito's), marker. Two that are not private have none, and
# two that are left to the table of the docs, to keep the figure clear.
LINES = {
    "dpselect": ("dpselect", "#D55E00", "o"),
    "dpselect, delta=1e-6": ("dpselect, with a delta", "#E69F00", "s"),
    "dpselect, logistic loss": ("dpselect, logistic loss", "", ""),
    "dpselect, logistic loss, delta=1e-6": ("dpselect, logistic loss, with a delta", "", ""),
    "DP-SGD": ("linear model by DP-SGD, tuned", "#0072B2", "^"),
    "DP-EBM": ("InterpretML DP-EBM", "#009E73", "v"),
    "DP-EBM .1": ("the same, learning rate .1", "#56B4E9", "D"),
    "dpl logistic": ("diffprivlib logistic regression", "#CC79A7", "P"),
    "dpl forest": ("diffprivlib random forest", "#888888", "X"),
    "boosting": ("gradient boosting, not private", "", ""),
    "linear": ("linear model, not private", "", ""),
}
TITLES = {
    "nominal": ("stated", "each at the epsilon that it states"),
    "replace-one": ("same", "same promise: one record replaced"),
}
PAGES = {"": ("white", "#222222"), "-dark": ("#14181e", "#e0e0e0")}


def means(results, footing):
    """Return {method: {epsilon: mean AUC over TABLES and splits}}, where all tables were measured."""
    results = results[results["failed"].isna()]
    cells = results.groupby(KEY[:-1])["AUC"].mean()
    found = {}
    for name in LINES:
        for epsilon in sorted(set(results.loc[results["method"] == name, "epsilon"])):
            scores = [cells[key_of(table, METHODS[name], epsilon, footing)] for table in TABLES]
            found.setdefault(name, {})[epsilon] = sum(scores) / len(scores)
    return found


def label(name, delta):
    """Return the entry of a legend: what the method promises stands beside its name."""
    method, said = METHODS[name], LINES[name][0]
    if not method.adjacency:
        return said
    neighbours = "add/remove" if method.pays_twice else "replace"
    exponent = round(math.log10(delta))
    return f"{said} ({neighbours}, $\\delta={f'10^{{{exponent}}}' if method.delta else 0}$)"


def draw(results, footing, page, ink):
    """Return the figure of one footing."""
    style = {
        "font.size": 9.5,
        "text.color": ink,
        "axes.labelcolor": ink,
        "axes.edgecolor": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "figure.facecolor": page,
        "axes.facecolor": page,
        "svg.hashsalt": "dpselect",
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with plt.rc_context(style):
        fig, axes = plt.subplots(figsize=(4.6, 5.4), layout="constrained")
        dashes = iter([":", "--"])
        for name, scores in means(results, footing).items():
            said = label(name, results["delta"].iloc[0])
            _, colour, marker = LINES[name]
            if not METHODS[name].adjacency:
                line = {"linestyle": next(dashes), "linewidth": 1}
                axes.axhline(*scores.values(), color=ink, label=said, **line)
            elif marker:
                width = 2.2 if name.startswith("dpselect") else 1.3
                axes.plot(
                    scores.keys(),
                    scores.values(),
                    color=colour,
                    marker=marker,
                    linewidth=width,
                    markersize=5,
                    label=said,
                )
        axes.set(
            xscale="log",
            xlabel="epsilon (smaller is more private)",
            ylabel="AUC, mean of six tables",
            ylim=(0.61, 0.86),
            title=TITLES[footing][1],
        )
        axes.set_xticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
        axes.minorticks_off()
        axes.grid(color=ink, alpha=0.15, linewidth=0.8)
        fig.legend(loc="outside lower left", frameon=False, fontsize=8.5)
    return fig


def main(arguments=None):
    """Draw all panels."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", default=RESULTS)
    parser.add_argument("--folder", default=IMAGES, help="of the figures")
    options = parser.parse_args(arguments)
    results = read(options.results)
    for footing, (short, _) in TITLES.items():
        for suffix, (page, ink) in PAGES.items():
            fig = draw(results, footing, page, ink)
            path = Path(options.folder) / f"accuracy-{short}{suffix}.svg"
            fig.savefig(path, metadata={"Date": None})
            plt.close(fig)


if __name__ == "__main__":
    main()
