"""Draw the thumbnails of the gallery: what each example is about, with words that can be read.

Run ``python benchmarks/gallery_thumbnails.py``. They are sketches: no number in them is a result.
"""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

FOLDER = Path(__file__).parents[1] / "doc" / "images" / "thumbnails"
BLUE, ORANGE, GREY = "#4a7dbd", "#d9802e", "#888888"
X = np.linspace(0, 1, 200)


def bell(x, centre, width):
    return np.exp(-(((x - centre) / width) ** 2) / 2)


def say(ax, x, y, text, color="black", size=17, **how):
    ax.text(x, y, text, color=color, fontsize=size, transform=ax.transAxes, **how)


def hospital(ax, rng):
    curve = 1 - (1 - X) ** 3
    ax.fill_between(X, curve - 0.06, curve + 0.06, color=BLUE, alpha=0.3, lw=0)
    ax.plot(X, curve, color=BLUE, lw=4)
    ax.plot([0, 1], [0, 1], color=GREY, ls="--")
    say(ax, 0.42, 0.2, "AUC, with\nits interval")


def statistics_office(ax, rng):
    for i, (y, text) in enumerate(((0, "basic"), (0.4, "middle"), (1.2, "high"))):
        ax.errorbar(y, -i, xerr=0.2, color=BLUE, marker="o", ms=12, lw=4, capsize=8, capthick=3)
        ax.text(-0.95, -i, text, fontsize=17, va="center")
    ax.set(xlim=(-1, 1.6), ylim=(-2.6, 0.6))


def engineer(ax, rng):
    say(ax, 0.5, 0.78, "GridSearchCV", GREY, 22, ha="center")
    ax.annotate("", (0.5, 0.34), (0.5, 0.7), arrowprops={"arrowstyle": "-|>", "lw": 4, "color": GREY})
    say(ax, 0.5, 0.12, "StabilityGridSearchCV", BLUE, 22, ha="center")


def classify(ax, rng):
    curve = 1 / (1 + np.exp(-9 * (X - 0.5)))
    ax.plot(X, curve, color=BLUE, lw=4)
    x = rng.random(120)
    y = rng.random(120) < 1 / (1 + np.exp(-9 * (x - 0.5)))
    ax.scatter(x, y + 0.04 * rng.normal(size=120), color=np.where(y, ORANGE, GREY), s=22)
    say(ax, 0.05, 0.7, "no, or yes?")


def count(ax, rng):
    ax.bar(range(7), np.exp(-0.5 * np.arange(7)), color=BLUE)
    ax.set_xticks(range(7), range(7), fontsize=16)
    say(ax, 0.4, 0.75, "visits a year")


def density(ax, rng):
    centres = (np.arange(16) + 0.5) / 16
    ax.bar(centres, bell(centres, 0.4, 0.15) + 0.08 * rng.laplace(size=16), 0.058, color=BLUE, alpha=0.7)
    ax.plot(X, bell(X, 0.4, 0.15), color="black", lw=3)
    say(ax, 0.6, 0.75, "how wide?")


def kernels(ax, rng):
    angle, radius = rng.uniform(0, 2 * np.pi, 160), np.repeat([0.35, 0.95], 80)
    radius = radius + 0.12 * rng.normal(size=160)
    color = np.repeat([ORANGE, GREY], 80)
    ax.scatter(radius * np.cos(angle), radius * np.sin(angle), color=color, s=22)
    ax.add_patch(plt.Circle((0, 0), 0.65, fill=False, color=BLUE, lw=4))
    ax.set(aspect="equal")


def persons(ax, rng):
    rows = [4, 1, 3, 2]
    for person, n in enumerate(rows):
        for i in range(n):
            at = (sum(rows[:person]) + i) * 0.09
            ax.barh(1 - at, 0.5, 0.06, color=[BLUE, ORANGE, "#5a9e5a", "#8a64a8"][person])
        middle = 1 - (sum(rows[:person]) + (n - 1) / 2) * 0.09
        ax.text(0.56, middle, f"person {person + 1}", va="center", fontsize=16)
    ax.set(xlim=(0, 1))


def regress(ax, rng):
    x = rng.random(60)
    ax.scatter(x, 0.2 + 0.6 * x + 0.12 * rng.normal(size=60), color=GREY, s=26)
    ax.plot(X, 0.2 + 0.6 * X, color=BLUE, lw=4)
    say(ax, 0.05, 0.82, "a number")


def text(ax, rng):
    for i, word in enumerate(("axis", "fit", "colour")):
        say(ax, 0.05, 0.75 - 0.3 * i, f'"{word}"', size=20)
    for i, j in enumerate((3, 0, 5)):
        to = (0.62 + 0.06 * j, 0.5)
        ax.annotate(
            "", to, (0.42, 0.8 - 0.3 * i), arrowprops={"arrowstyle": "-|>", "lw": 2, "color": GREY}
        )
    for j in range(6):
        filled = BLUE if j in (0, 3, 5) else "none"
        ax.add_patch(plt.Rectangle((0.6 + 0.06 * j, 0.3), 0.05, 0.18, fc=filled, ec=GREY))
    ax.set(xlim=(0, 1), ylim=(0, 1))


def page(ax, rng):
    for i, (low, high, middle) in enumerate(((0.1, 0.6, 0.35), (0.4, 0.8, 0.65), (0.7, 0.95, 0.88))):
        y = 0.68 - 0.27 * i
        ax.add_patch(plt.Rectangle((0.3, y), 0.68, 0.14, color="#88888830"))
        ax.add_patch(plt.Rectangle((0.3 + 0.68 * low, y), 0.68 * (high - low), 0.14, color=BLUE))
        ax.plot([0.3 + 0.68 * middle] * 2, [y - 0.03, y + 0.17], color="black", lw=3)
        say(ax, 0.02, y + 0.02, f"ε = {(0.1, 1, 10)[i]}", size=18)
    ax.set(xlim=(0, 1), ylim=(0, 1))


def planning(ax, rng):
    for i, color in enumerate((GREY, ORANGE, BLUE)):
        ax.plot(X, np.exp(-3 * X) * (1 - 0.3 * i), color=color, lw=4)
    say(ax, 0.4, 0.7, "noise falls\nwith records")


def survey(ax, rng):
    widths = [1, 0.8, 0.55, 0.25, 0.15, 0.1]
    ax.barh(range(6), widths, color=[BLUE] * 3 + ["#88888880"] * 3)
    ax.axhline(2.5, color="black", ls="--")
    ax.invert_yaxis()
    say(ax, 0.4, 0.12, "worth its noise?")


def target_accuracy(ax, rng):
    ax.plot(X, 0.15 + 0.8 * np.exp(-4 * X), color=BLUE, lw=4)
    ax.axhline(0.4, color="black", ls="--")
    ax.scatter([0.29], [0.4], color=ORANGE, s=200, zorder=3)
    ax.set_ylim(0, 1)
    say(ax, 0.45, 0.5, "the target")


def team_budget(ax, rng):
    ax.step([0, 1, 2, 3, 4], [0.05, 0.3, 0.55, 0.7, 0.9], where="post", color=BLUE, lw=5)
    ax.axhline(1, color="black", ls="--")
    say(ax, 0.04, 0.72, "the budget")
    ax.set_ylim(0, 1.15)


def privacy_game(ax, rng):
    for centre, color in ((0.4, BLUE), (0.58, ORANGE)):
        ax.plot(X, bell(X, centre, 0.15), color=color, lw=4)
        ax.fill_between(X, 0, bell(X, centre, 0.15), color=color, alpha=0.25, lw=0)
    say(ax, 0.02, 0.82, "with you,\nor not?", va="center")


def stepwise(ax, rng):
    ax.plot(X, 0.3 + 0.6 * np.sqrt(X), color=ORANGE, lw=4)
    ax.plot(X, 0.3 + 0.15 * np.sqrt(X) - 0.15 * X, color=BLUE, lw=4)
    ax.set_ylim(0, 1.15)
    say(ax, 0.2, 0.85, "the holdout says", ORANGE)
    say(ax, 0.45, 0.06, "the truth", BLUE)


def unstable(ax, rng):
    ax.plot([0, 0.45], [0.5, 0.5], color=GREY, lw=5)
    for y, color in ((0.9, BLUE), (0.1, ORANGE)):
        ax.annotate("", (1, y), (0.43, 0.5), arrowprops={"arrowstyle": "-|>", "lw": 5, "color": color})
    ax.set(xlim=(0, 1.02), ylim=(0, 1))
    say(ax, 0.02, 0.6, "one record")


def draw(name, sketch):
    figure, ax = plt.subplots(figsize=(4, 2.8), dpi=100)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    sketch(ax, np.random.default_rng(0))
    figure.subplots_adjust(0.04, 0.12 if name == "count" else 0.04, 0.96, 0.96)
    figure.savefig(FOLDER / f"{name}.png", transparent=False, metadata={"Software": None})
    plt.close(figure)


SKETCHES = [
    hospital, statistics_office, engineer, classify, count, density, kernels, persons, regress, text,
    page, planning, survey, target_accuracy, team_budget, privacy_game, stepwise, unstable,
]  # fmt: skip

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for sketch in SKETCHES:
        draw(sketch.__name__, sketch)
