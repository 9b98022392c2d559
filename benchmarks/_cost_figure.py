"""The figure of ``cost_tables.py``."""

# Okabe and Ito's colours, distinguished by colour-blind readers too
COLOURS = ("#000000", "0.75", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "0.55")
MARKERS = "o+s^vDPX*"
MEBI = 2**20


def draw(curves, labels, path):
    """Draw time and memory over each size, on logarithmic axes.

    Parameters
    ----------
    curves : DataFrame
        Lines of ``cost_growth.csv``.
    labels : dict of str to str
        Of the sizes, one column of panels each.
    path : str
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["font.size"] = 11
    names, sizes = list(dict.fromkeys(curves["subject"])), list(labels)
    fig, grid = plt.subplots(
        2,
        len(sizes),
        layout="constrained",
        sharex="col",
        sharey="row",
        squeeze=False,
        figsize=(2.9 * len(sizes), 7.5),
    )
    for (subject, size), group in curves.groupby(["subject", "size"], sort=False):
        style = names.index(subject)
        column = grid[:, sizes.index(size)]
        for axes, costs in zip(column, (group["cpu"], group["peak"] / MEBI)):
            axes.plot(
                group["value"],
                costs,
                color=COLOURS[style],
                marker=MARKERS[style],
                markersize=5,
                linewidth=1.4,
                label=subject,
            )
    for axes in grid.flat:
        axes.set(xscale="log", yscale="log")
        axes.grid(color="0.9", linewidth=0.8)
    # axes are shared, so limits are known when all curves are drawn
    for axes in grid.flat:
        slope_one(axes)
    for size, axes in zip(sizes, grid[1]):
        values = sorted(set(curves.loc[curves["size"] == size, "value"]))
        values = values[:: -(-len(values) // 3)]  # (more would touch)
        axes.set_xticks(values, [f"{value:,}" for value in values])
        axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        axes.set_xlabel(labels[size])
    grid[0, 0].set_ylabel("seconds")
    grid[1, 0].set_ylabel("peak above the records, MiB")
    handles = {}
    for axes in grid.flat:
        handles |= {name: handle for handle, name in zip(*axes.get_legend_handles_labels())}
    fig.legend(handles.values(), handles, loc="outside lower center", ncols=5, frameon=False)
    fig.savefig(path, dpi=110)
    plt.close(fig)


def slope_one(axes):
    """Draw a line of exponent 1 through the middle of a panel."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    middle = (low * high) ** 0.5
    steep = (right / left) ** 0.5
    axes.plot(
        [left, right],
        [middle / steep, middle * steep],
        color="0.7",
        linestyle=":",
        linewidth=1.2,
        label="exponent 1",
        zorder=0,
    )
    axes.set(xlim=(left, right), ylim=(low, high))
