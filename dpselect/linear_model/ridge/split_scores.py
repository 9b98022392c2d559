"""Cross-validation of private ridge models: one pass to train them all, one to score them."""

from dataclasses import replace

import numpy as np

from ...records.persons import person_weights
from ...rows import block_sum, in_part
from .sums import clipped_rows, split_sums


def ridge_split_scores(problem, trials, score, records, parts):
    """Return the scores of trials with one RidgeProblem, shape (J, k)."""
    coef, intercept = split_coefficients(problem, trials, records, parts)

    p = records.shape.n_features
    bounds, unit = problem.row_bounds(p), problem.row_unit(p)

    def errors(block, targets, test, person_weight=None):
        clipped = clipped_rows(block, bounds, unit)
        total = np.empty(intercept.shape)
        for j in range(len(total)):
            chosen = np.flatnonzero(in_part(test, j))
            predicted = clipped[chosen] @ coef[j].T + intercept[j]
            weight = None if person_weight is None else person_weight[chosen]
            total[j] = score.total(targets[chosen, None], predicted, weight)
        return (total,)

    width = max(p, len(trials))
    (total,) = block_sum(
        errors, records.X, records.y, parts.test, *person_weights(records), row_elements=width
    )
    return -total / parts.test_sizes[:, None]


def split_coefficients(problem, trials, records, parts):
    """Return coefficients (J, k, p) and intercepts (J, k) of each trial on each training part."""
    shape, noises = records.shape, [trial.noise(records.shape) for trial in trials]
    calibrations = [
        [trial.calibration(replace(shape, n_samples=n)) for trial in trials]
        for n in parts.train_sizes.tolist()
    ]
    sums = {}
    for bits in {calibration.bits for row in calibrations for calibration in row}:
        own = [j for j, row in enumerate(calibrations) if any(c.bits == bits for c in row)]
        found = split_sums(records, parts, own, bits, problem)
        sums |= {(bits, j): one for j, one in zip(own, found)}
    models = [
        [c.released(sums[c.bits, j], noise) for c, noise in zip(row, noises)]
        for j, row in enumerate(calibrations)
    ]
    return tuple(
        np.array([[model[name] for model in row] for row in models]) for name in ("coef_", "intercept_")
    )
