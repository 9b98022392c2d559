"""Draw one term of a model: a curve, bars for levels, or an image of a pair."""

import math

import numpy as np

from ..preprocessing.schema import INVERSES, TRANSFORMS, CategoryColumn
from ..preprocessing.terms import CategoryTerm, PairTerm

N_POINTS_OF_A_PAIR = 41  # between bounds; odd, to include the middle
MAX_LEVELS = 24  # in one plot
HEIGHT, LEVEL_HEIGHT = 2.6, 0.22  # inches


def height(drawn):
    """Return the height of the picture of a term, in inches."""
    term, levels = drawn.term, 0
    if isinstance(term, PairTerm):
        levels = len(_levels(term.factors[1]))
    elif _is_listed(term):
        levels = len(drawn.effect)
    return max(HEIGHT, LEVEL_HEIGHT * min(levels, MAX_LEVELS) + 0.8)


def _is_listed(term):
    return isinstance(term.parts[0], CategoryColumn)


def _levels(factor):
    """Return the names of the levels of a factor of a pair; none for a number."""
    levels = factor.levels if isinstance(factor, CategoryTerm) else ()
    return [str(level).strip("<>") for level in levels]


def draw(ax, drawn, limit, unit):
    """Draw a term on a scale from -limit to limit."""
    if isinstance(drawn.term, PairTerm):
        _draw_pair(ax, drawn, limit, unit)
    elif _is_listed(drawn.term):
        _draw_levels(ax, drawn)
        ax.set(xlim=(-limit, limit), xlabel=unit)
        ax.axvline(0, color="0.8", lw=0.8, zorder=0)
    else:
        _draw_curve(ax, drawn)
        ax.set(ylim=(-limit, limit), ylabel=unit)
        ax.axhline(0, color="0.8", lw=0.8, zorder=0)
    said = "\nmay be noise alone" if drawn.may_be_noise else ""
    if drawn.is_unknown:
        said = "\nnot known without intervals" if drawn.band.is_bound else "\nnot known"
    ax.set_title(" and ".join(map(_label, drawn.term.parts)) + said, fontsize="medium")


def _draw_levels(ax, drawn):
    """Draw a bar for each level, or only for those with the largest effects."""
    (values,) = drawn.values
    shown = np.sort(np.argsort(-abs(drawn.effect), kind="stable")[:MAX_LEVELS])
    places = np.arange(len(shown))
    ax.barh(places, drawn.effect[shown], height=0.7, color="tab:blue")
    if drawn.band is not None:
        ax.hlines(places, drawn.band.low[shown], drawn.band.high[shown], color="0.3")
    names = ["missing" if value is None else str(value).strip("<>") for value in values[shown]]
    ax.set_yticks(places, names, fontsize="small")
    ax.set_ylim(len(shown) - 0.5, -0.5)
    if len(shown) < len(values):
        ax.set_ylabel(f"the {len(shown)} largest of {len(values)}")


def _draw_curve(ax, drawn):
    """Draw a curve over the bounds, or steps between cuts, and a point for gaps beside them."""
    (values,), (column,) = drawn.values, drawn.term.parts
    transform, inverse = TRANSFORMS[column.transform], INVERSES[column.transform]
    if column.transform is not None:
        ax.set_xscale("function", functions=(transform, inverse))
    style = {"drawstyle": "steps-post"} if isinstance(drawn.term, CategoryTerm) else {}
    gap = np.isnan(values)
    x, effect = values[~gap], drawn.effect[~gap]
    ax.plot(x, effect, color="tab:blue", **style)
    if drawn.band is not None:
        ends = drawn.band.low[~gap], drawn.band.high[~gap]
        step = "post" if style else None
        ax.fill_between(x, *ends, color="tab:blue", alpha=0.2, lw=0, step=step)
    ticks = _ticks(column)
    names = _names(ticks)
    if gap.any():
        low, high = transform(column.low), transform(column.high)
        at_right = float(inverse(high + 0.12 * (high - low)))
        ax.plot([at_right], drawn.effect[gap], "o", color="tab:blue")
        if drawn.band is not None:
            ax.vlines([at_right], drawn.band.low[gap], drawn.band.high[gap], color="0.3")
        near = [tick for tick in ticks if transform(tick) > high - 0.1 * (high - low)]
        ticks, names = [*ticks, at_right], [*names, "missing"]
        names = ["" if tick in near else name for tick, name in zip(ticks, names)]
    ax.set_xticks(ticks, names, fontsize="small")
    ax.minorticks_off()


def _ticks(column):
    """Return about five numbers between the bounds."""
    from matplotlib.ticker import MaxNLocator

    low, high = column.low, column.high
    ticks = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
    if column.transform is not None:
        powers = 10.0 ** np.arange(math.floor(math.log10(max(abs(low), abs(high)))) + 1)
        apart = max(1, math.ceil(len(powers) / (4 if low >= 0 else 2)))
        powers = powers[len(powers) - 1 :: -apart]
        ticks = np.sort([*-powers, 0.0, *powers])
    inside = [float(tick) for tick in ticks if low <= tick <= high]
    return inside or [low, high]


def _names(ticks):
    return [f"{tick:g}" if abs(tick) < 1e4 else f"{tick:.0e}".replace("e+0", "e") for tick in ticks]


def _draw_pair(ax, drawn, limit, unit):
    """Draw an image over numbers without their gaps and over levels, or those of the largest effects."""
    factors = drawn.term.factors
    image = drawn.effect.reshape([len(factor.cells(N_POINTS_OF_A_PAIR)) for factor in factors])
    smooth = not any(map(_levels, factors))
    edges, shown = zip(*(_edges(factor, image, i, smooth) for i, factor in enumerate(factors)))
    mesh = ax.pcolormesh(
        *edges,
        image[np.ix_(*shown)].T,
        cmap="coolwarm",
        vmin=-limit,
        vmax=limit,
        shading="gouraud" if smooth else "flat",
        rasterized=True,
    )
    ax.figure.colorbar(mesh, ax=ax, label=unit)
    for axis, factor, places in zip("xy", factors, shown):
        column, levels, label = factor.parts[0], _levels(factor), _label(factor.parts[0])
        if levels:
            names = [levels[place] for place in places]
            ticks = np.arange(len(names))
            if len(names) < len(levels):
                label = f"{label}: the {len(names)} largest of {len(levels)}"
        else:
            ticks = _ticks(column)
            names = _names(ticks)
            if column.transform is not None:
                functions = TRANSFORMS[column.transform], INVERSES[column.transform]
                getattr(ax, f"set_{axis}scale")("function", functions=functions)
        turned = {"rotation": "vertical"} if axis == "x" and max(map(len, names)) > 3 else {}
        getattr(ax, f"set_{axis}ticks")(ticks, names, fontsize="small", **turned)
        getattr(ax, f"set_{axis}label")(label)
    if _levels(factors[1]):
        ax.invert_yaxis()


def _edges(factor, image, axis, smooth):
    """Return the edges of cells along an axis, or with a smooth image their centres, and the places."""
    levels = _levels(factor)
    if levels:
        largest = abs(image).max(axis=1 - axis)
        shown = np.sort(np.argsort(-largest, kind="stable")[:MAX_LEVELS])
        return np.arange(len(shown) + 1) - 0.5, shown
    shown = np.arange(N_POINTS_OF_A_PAIR)
    values = factor.cells(N_POINTS_OF_A_PAIR)[shown]
    if smooth:
        return values, shown
    return np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, values[-1:]]), shown


def _label(column):
    unit = getattr(column, "unit", None)
    return f"{column.name} ({unit})" if unit else str(column.name)
