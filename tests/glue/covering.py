"""Covering arrays: few rows of settings in which any two values that may meet do meet."""

import itertools
import random

TRIES = 4


def covering_array(axes, meet, seed=0):
    """Return rows, dicts with a value for each axis, in which any two values that may meet do.

    Greedy: each row begins with a pair that has not met, and takes on each other axis the value that
    makes most pairs meet for the first time.

    Parameters
    ----------
    axes : dict
        From the name of an axis to its values, which are told apart by ``==``.
    meet : callable
        ``meet(axis, value, other_axis, other_value)`` tells whether two values may be in one row. It
        should be possible to complete any pair that may meet.
    seed : int, default=0
    """
    order = random.Random(seed)
    items = [(axis, value) for axis, values in axes.items() for value in values]
    apart = {item: set() for item in items}
    for one, other in itertools.permutations(items, 2):
        if not meet(*one, *other):
            apart[one].add(other)
            apart[other].add(one)
    missing = dict.fromkeys(
        (a, b) for a, b in itertools.combinations(items, 2) if a[0] != b[0] and b not in apart[a]
    )
    # those with which an item has not met
    strangers = {item: set() for item in items}
    for one, other in missing:
        strangers[one].add(other)
        strangers[other].add(one)

    def completed(pair):
        row = dict(pair)
        for axis in order.sample(list(axes), len(axes)):
            if axis in row:
                continue
            taken = set(row.items())
            fits = [value for value in axes[axis] if apart[axis, value].isdisjoint(taken)]
            if not fits:
                return None
            gains = [len(strangers[axis, value] & taken) + order.random() for value in fits]
            row[axis] = fits[gains.index(max(gains))]
        return {axis: row[axis] for axis in axes}

    def met(row):
        return [pair for pair in itertools.combinations(row.items(), 2) if pair in missing]

    rows = []
    while missing:
        pair = next(iter(missing))
        found = [row for row in (completed(pair) for _ in range(TRIES)) if row is not None]
        assert found, f"no row has {pair}"
        rows.append(max(found, key=lambda row: len(met(row))))
        for one, other in met(rows[-1]):
            del missing[one, other]
            strangers[one].discard(other)
            strangers[other].discard(one)
    return rows


def every_pair(cases, settings_of, axis=None):
    """Return few of the cases, in which any two settings meet that meet in one of all cases.

    Parameters
    ----------
    cases : dict
        From names to cases.
    settings_of : callable
        Returns a dict of the settings of a case; values are told apart by how they are written.
    axis : str, default=None
        Only pairs of which one setting is on this axis count.
    """

    def pairs_of(case):
        pairs = itertools.combinations([(a, str(value)) for a, value in settings_of(case).items()], 2)
        return {pair for pair in pairs if axis in (None, pair[0][0], pair[1][0])}

    pairs = {name: pairs_of(case) for name, case in cases.items()}
    missing, chosen = set().union(*pairs.values()), set()
    while missing:
        chosen.add(max(pairs, key=lambda name: len(pairs[name] & missing)))
        missing = missing.difference(*(pairs[name] for name in chosen))
    return {name: case for name, case in cases.items() if name in chosen}
