"""Random numbers of an audit, which protect nothing."""

import numpy as np


def numpy_generator(random_state):
    """Return numpy's generator for a `random_state`, or refuse an invalid one."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        kind = type(random_state).__name__
    raise TypeError(
        f"random_state of type {kind} is no seed here, so the audit could not be run again; write "
        "None, an integer of 0 or more, or a Generator."
    )
