"""Where a Display draws."""


def axes_or_new(ax):
    """Return `ax`, or the axes of a new figure.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "Pictures need matplotlib, which is not installed; run pip install dpselect[plot]."
        ) from None
    return pyplot.subplots(layout="constrained")[1] if ax is None else ax
