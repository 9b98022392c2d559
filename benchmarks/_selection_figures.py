"""Figures of ``selection_strategies.py``."""

import numpy as np
from _selection_report import by_round, interval

# Okabe and Ito's colours, distinguished by colour-blind readers too
STYLES = {
    "auto": ("#000000", "-", "o"),
    "optimal_risk": ("#0072B2", "--", "s"),
    "stability": ("#009E73", "-", "^"),
    "CV13": ("#009E73", "--", "v"),
    "budget_split count": ("#E69F00", "-", "D"),
    "data_split": ("#D55E00", "--", "P"),
    "random_stopping": ("#56B4E9", "-", "X"),
    "random": ("#CC79A7", "-", "*"),
    "control": ("0.55", ":", "h"),
}


def figures(parts, directory):
    """Draw CV13's figures again: AUC and MSE, and the chosen index, over epsilon.

    Parameters
    ----------
    parts : list of (Contest, dict, DataFrame)
        One for each data set.
    directory : Path
        Where ``selection_scores.png`` and ``selection_index.png`` go.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["font.size"] = 11
    for metrics, name in ((("AUC", "MSE"), "scores"), (("chosen",), "index")):
        fig, grid = plt.subplots(
            len(metrics),
            len(parts),
            layout="constrained",
            squeeze=False,
            sharex=True,
            figsize=(5.6 * len(parts), 1.2 + 4.2 * len(metrics)),
        )
        for (contest, _, results), column in zip(parts, grid.T):
            column[0].set_title(contest.data, fontsize=12)
            for axes, metric in zip(column, metrics):
                draw(axes, contest, results, metric)
            column[-1].set_xlabel("epsilon")
        for axes, metric in zip(grid[:, 0], metrics):
            axes.set_ylabel({"chosen": "index of the chosen alpha"}.get(metric, metric))
        fig.legend(
            *grid[0, 0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=5,
            frameon=False,
        )
        fig.savefig(directory / f"selection_{name}.png", dpi=110)
        plt.close(fig)


def draw(axes, contest, results, metric):
    """Draw one panel: means with 95 % intervals, side by side so that none hides another."""
    epsilons = np.array(contest.epsilons)
    for j, (method, (colour, style, marker)) in enumerate(STYLES.items()):
        means, halves = zip(
            *(interval(by_round(results, epsilon, metric)[method]) for epsilon in epsilons)
        )
        axes.errorbar(
            epsilons * 1.02 ** (j - (len(STYLES) - 1) / 2),
            means,
            halves,
            color=colour,
            linestyle=style,
            marker=marker,
            markersize=5,
            linewidth=1.4,
            elinewidth=1,
            label={"budget_split count": "budget_split", "control": "control (not private)"}.get(
                method, method
            ),
        )
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.grid(axis="y", color="0.9", linewidth=0.8)
