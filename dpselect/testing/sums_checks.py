"""Check sums of values and noise: at the gate, and at an epsilon of nearly 0."""

import numpy as np

from .case import TINY
from .neighbours import families
from .tally import leave_out, require
from .watched_gate import Watched

NO_GATE = "no number passes dpselect.noise.release"
# number of draws that show whether values depend on the noise
SEEDS = (1, 2, 3)


def plain_places(watched, data_sets, first):
    """Return the indices of numbers at the gate that depend only on the records and earlier outputs.

    Values of objective perturbation do not: they depend on noise that is drawn elsewhere.
    """
    plain = [True] * len(first.passed)
    for data in data_sets:
        runs = [watched.fit(data, seed, first.passed) for seed in (0, *SEEDS)]
        for run in runs[1:]:
            for i, (one, other) in enumerate(zip(runs[0].passed, run.passed)):
                plain[i] &= np.array_equal(one.values, other.values)
    return [i for i, is_plain in enumerate(plain) if is_plain]


def check_the_gate(case):
    """Check that all that depends on the records passes the gate, with independent noise."""
    watched = Watched(case)
    for family in families(case):
        first = watched.fit(family[0])
        if not first.passed:
            leave_out(f"all of it, as {NO_GATE}")
            return
        plain = plain_places(watched, family[:3], first)
        moved_elsewhere = {
            path
            for data in family[:3]
            for seed in SEEDS
            for path in _differing(
                watched.fit(data, 0, first.passed).kept(), watched.fit(data, seed, first.passed).kept()
            )
        }
        known = watched.fit(family[0], 0, first.passed)
        for data in family:
            run = watched.fit(data, 0, first.passed)
            require(
                not run.other_shape,
                "How many numbers pass dpselect.noise.release, or their shape, depends on the records; "
                "let public numbers decide it.",
            )
            for i, (one, other) in enumerate(zip(known.passed, run.passed)):
                if i not in plain:
                    continue
                require(
                    np.array_equal(one.step, other.step),
                    "The step that dpselect.noise.release is given depends on the records, so the last "
                    "bits tell of them; compute it from public numbers.",
                )
                require(
                    np.array_equal(one.noise, other.noise),
                    "At one seed the noise that dpselect.noise.release is given differs between data "
                    "sets: its size, or whether there is any, depends on the records; scale it by "
                    "public numbers.",
                )
            paths = _differing(known.kept(), run.kept()) - moved_elsewhere
            names = sorted({".".join(map(str, path)) for path in paths})
            require(
                not names,
                f"{', '.join(names)} depends on the records by another way than through "
                "dpselect.noise.release; compute it from what leaves there, and from public numbers.",
            )
        if moved_elsewhere:
            names = sorted({str(path[0]) for path in moved_elsewhere})
            leave_out(f"{', '.join(names)}, which other noise moves than that at the gate")
    if len(plain) < len(first.passed):
        leave_out("noise of values that depend on noise themselves")


def _differing(one, other):
    return {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


def check_noise_hides_all(case):
    """Check that at an epsilon of nearly 0 the noise of every number hides the records."""
    for family in families(case):
        usual = case.fit(family[0], epsilon=TINY)
        expected, spread = case.numbers(usual), case.spread(family[0], epsilon=TINY)
        names = case.places(usual)
        for data in family[1:]:
            found = case.numbers(case.fit(data, epsilon=TINY))
            require(
                found.shape == expected.shape, "How many numbers are released depends on the records."
            )
            shown = np.flatnonzero(~(np.abs(found - expected) <= 0.02 * spread + 1e-300))
            require(
                not len(shown),
                f"At epsilon={TINY:g} {', '.join(sorted({names[i] for i in shown}))} still shows other "
                "records beside the noise: a number without noise, noise whose size depends on the "
                "records or does not grow as epsilon falls, or records that nothing bounds.",
            )
