"""Cross-validation of private ridge models: one pass to train them all, one to score them."""

import numpy as np

from ...records import regression_records
from ...rows import block_sum
from .noise import Reading
from .sums import clip_factor, split_sums


def ridge_split_scores(models, score, X, y, parts):
    """Return exact scores of models on splits; see :meth:`dpselect.DPRidge.split_scores`."""
    alike = {}
    for i, model in enumerate(models):
        model._check_parameters()
        alike.setdefault(tuple(model._bounds().values()), []).append(i)
    scores = np.empty((len(parts.test_sizes), len(models)))
    for group in alike.values():
        scores[:, group] = _scores_alike([models[i] for i in group], score, X, y, parts)
    return scores


def _scores_alike(models, score, X, y, parts):
    """Return the exact scores of models that bound records alike, shape (J, k)."""
    leader = models[0]
    rows, targets = regression_records(leader, X, y)
    coef, intercept = _coefficients(models, rows, targets, parts)
    bound = float(leader.data_norm)

    def errors(block, targets, test):
        clipped = block * (bound * clip_factor(block, leader.norm, bound))
        total = np.empty(intercept.shape)
        for j, chosen in enumerate(test.T):
            chosen = np.flatnonzero(chosen)
            predicted = clipped[chosen] @ coef[j].T + intercept[j]
            total[j] = score.total(targets[chosen, None], predicted)
        return (total,)

    width = max(rows.shape[1], len(models))
    (total,) = block_sum(errors, rows, targets, parts.test, row_elements=width)
    return -total / parts.test_sizes[:, None]


def _coefficients(models, rows, targets, parts):
    """Return those of each model on each training part, of shapes (J, k, p) and (J, k)."""
    leader, p = models[0], rows.shape[1]
    coef, intercept = np.empty((len(parts.train_sizes), len(models), p)), []
    sizes = parts.train_sizes.tolist()
    bits_of = [[model._entry_bits(n, p) for model in models] for n in sizes]
    sums = {}
    for bits in {bits for row in bits_of for bits in row}:
        own = [j for j, row in enumerate(bits_of) if bits in row]
        found = split_sums(rows, targets, parts, own, bits, **leader._bounds())
        sums[bits] = dict(zip(own, found))
    for j, n in enumerate(sizes):
        decomposed = None
        for i, (model, bits) in enumerate(zip(models, bits_of[j])):
            if model.perturbation != "covariance" and decomposed is None:
                values = sums[bits][j].values * leader._units(p)
                decomposed = Reading.of(values[:-1, :-1] / n, values[:-1, -1] / n, 0.0)
            model._publish(sums[bits][j], (n, p), leader, decomposed)
            coef[j, i] = model.coef_
            intercept.append(model.intercept_)
    return coef, np.reshape(intercept, coef.shape[:2])
