"""The figure of ``cost.py``."""

# Okabe and Ito's colours, distinguished by colour-blind readers too
COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "0.55")
MARKERS = "os^vDPX*"
LABELS = {
    "n": "records n", "d": "columns d", "k": "candidates k", "folds": "folds",
    "noise_samples": "noise samples",
    "T": "levels T",
}
MEBI = 2**20


def draw(curves, sizes, path):
    """Draw time and memory over each size, on logarithmic axes.

    Parameters
    ----------
    curves : list of cost.Curve
    sizes : list of str
        One column of panels each.
    path : str
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["font.size"] = 11
    names = list(dict.fromkeys(curve.subject for curve in curves))
    fig, grid = plt.subplots(
        2, len(sizes), layout="constrained", sharex="col", sharey="row", squeeze=False,
        figsize=(2.9 * len(sizes), 7.5),
    )
    for curve in curves:
        style = names.index(curve.subject)
        column = grid[:, sizes.index(curve.size)]
        for axes, costs in zip(column, (curve.seconds, curve.peaks / MEBI)):
            axes.plot(
                curve.values, costs, color=COLOURS[style], marker=MARKERS[style], markersize=5,
                linewidth=1.4, label=curve.subject,
            )
    for axes in grid.flat:
        axes.set(xscale="log", yscale="log")
        axes.grid(color="0.9", linewidth=0.8)
    # axes are shared, so limits are known when all curves are drawn
    for axes in grid.flat:
        slope_one(axes)
    for size, axes in zip(sizes, grid[1]):
        values = next(curve.values for curve in curves if curve.size == size)[::2]
        axes.set_xticks(values, [f"{value:,}" for value in values])
        axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        axes.set_xlabel(LABELS[size])
    grid[0, 0].set_ylabel("seconds")
    grid[1, 0].set_ylabel("peak above the records, MiB")
    handles = {}
    for axes in grid.flat:
        handles |= {name: handle for handle, name in zip(*axes.get_legend_handles_labels())}
    fig.legend(
        handles.values(), handles, loc="outside lower center", ncols=5, frameon=False
    )
    fig.savefig(path, dpi=110)
    plt.close(fig)


def slope_one(axes):
    """Draw a line of exponent 1 through the middle of a panel."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    middle = (low * high) ** 0.5
    steep = (right / left) ** 0.5
    axes.plot(
        [left, right], [middle / steep, middle * steep], color="0.7", linestyle=":",
        linewidth=1.2, label="exponent 1", zorder=0,
    )
    axes.set(xlim=(left, right), ylim=(low, high))
