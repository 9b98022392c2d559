"""Exact scores of the candidates. They are functions of the data and are never released."""

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from ..config import with_config
from ..ledger import uncharged
from ..rows import take_records


def exact_scores(candidates, draws, score, X, y, splits, *, n_jobs, pre_dispatch, progress):
    """Train every candidate on every split and return its mean score.

    Parameters
    ----------
    candidates : list of Candidate
    draws : list of list of InnerStream
        Entry [i][j]: the stream of candidate i's draw j, the same for all splits.
    score : score
    X : indexable of length n
    y : array-like of shape (n,) or None
    splits : list of (train, test)
    n_jobs, pre_dispatch
        For joblib.
    progress : Progress
        Is told which candidates are done.

    Returns
    -------
    ndarray of shape (k,)
        Means over the splits and draws; zeros for a single candidate, which is not compared.
    """
    total = np.zeros(len(candidates))
    groups = alike_in_steps(candidates)
    if len(candidates) == 1:
        # what its steps refuse is refused here, as with more candidates
        candidates[0].transform(X)
        return total
    # here: joblib asks for later jobs in threads of its own
    score_split = with_config(_score_split)
    for members in progress.over(groups, "group of candidates"):
        rows = candidates[members[0]].transform(X)
        models = [
            clone(candidates[i].model).set_params(random_state=draw)
            for i in members
            for draw in draws[i]
        ]
        results = Parallel(n_jobs=n_jobs, pre_dispatch=pre_dispatch)(
            delayed(score_split)(models, rows, y, train, test, score) for train, test in splits
        )
        total[members] = np.mean(results, axis=0).reshape(len(members), -1).mean(axis=1)
    return total


def alike_in_steps(candidates):
    """Group candidates whose steps before the model are the same: they see the same rows.

    Parameters
    ----------
    candidates : list of Candidate

    Returns
    -------
    list of list of int
        Indices into `candidates`.
    """
    groups = {}
    for i, candidate in enumerate(candidates):
        groups.setdefault(candidate.steps_key, []).append(i)
    return list(groups.values())


def _score_split(models, X, y, train, test, score):
    """Train all models on one split and return their exact scores."""
    # threads share what they are given, and must not train one object on two splits at once
    models = [clone(model) for model in models]
    with uncharged():
        return _scores_of(models, X, y, train, test, score)


def _scores_of(models, X, y, train, test, score):
    X_train, y_train = take_records(X, y, train)
    kinds = {}
    for model in models:
        kinds.setdefault(type(model), []).append(model)
    for kind, group in kinds.items():
        if hasattr(kind, "fit_batch"):
            kind.fit_batch(group, X_train, y_train)
        else:
            for model in group:
                model.fit(X_train, y_train)
    X_test, y_test = take_records(X, y, test)
    return [score(model, X_test, y_test) for model in models]


def n_columns(X):
    """Return the number of columns of a table."""
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if len(shape) != 2:
        raise ValueError(
            f"X has {len(shape)} dimensions, but a search needs a table of rows and columns "
            "(2 dimensions); reshape it, for instance with X.reshape(-1, 1)."
        )
    return shape[1]
