"""Exact scores of the candidates. They are functions of the data and are never released."""

import math
import warnings
from functools import wraps
from typing import cast

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.utils import indexable

from ..base.capabilities import ScoresSplits
from ..config import with_config
from ..metrics import Score
from ..preprocessing.kinds_check import SAME_KIND
from ..records.persons import check_one_label_a_row
from ..records.records import score_on, split_groups, take_part
from ..rows import MOST_SPLITS, Parts, align, block_sum, is_lazy, n_rows, run_here
from ..utils.type_aliases import Function
from ..utils.validation import check_number, unquoted
from .candidates import n_columns, places_by
from .row_steps import NO_DUMMY, public_rows


def exact_scores(candidates, trials, score, X, y, splits, *, n_jobs, pre_dispatch, progress):
    """Train every candidate on every split and return its mean score, shape (k,).

    Each trial of a candidate has a noise sample, which is the same for all splits. Zeros for a single
    candidate, which is not compared.
    """
    total = np.zeros(len(candidates))
    if len(candidates) == 1:
        # what its steps refuse is refused here, as with more candidates
        rows = candidates[0].transform(X, for_one_fit=True)
        if is_lazy(rows) and not is_lazy(X):
            block_sum(lambda block: (np.zeros(1),), rows, beside=1)
        return total
    # here: joblib asks for later jobs in threads of its own
    score_splits = with_config(_score_splits)
    groups = places_by(candidates, lambda candidate: candidate.steps_key)
    for members in progress.over(groups, "group of candidates"):
        rows = candidates[members[0]].transform(X)
        some_trials = [trial for i in members for trial in trials[i]]
        # jobs in threads restore each other's filters of warnings
        with run_here(rows), warnings.catch_warnings():
            results = Parallel(n_jobs=n_jobs, pre_dispatch=pre_dispatch)(
                delayed(score_splits)(some_trials, rows, y, some, score)
                for some in _chunks(splits, n_jobs)
            )
        means = np.concatenate(results).mean(axis=0)
        total[members] = means.reshape(len(members), -1).mean(axis=1)
    return total


def _chunks(splits, n_jobs):
    """Cut the splits into a list for each job, and into more if there are very many."""
    n_chunks = max(effective_n_jobs(n_jobs), math.ceil(len(splits) / MOST_SPLITS))
    bounds = np.linspace(0, len(splits), min(n_chunks, len(splits)) + 1).astype(int)
    return [splits[start:end] for start, end in zip(bounds[:-1], bounds[1:])]


def _score_splits(trials, X, y, splits, score):
    """Train all models on some splits and return their exact scores, shape (J, k)."""
    scores = np.empty((len(splits), len(trials)))
    # a score with a `__call__` of its own is called
    known = type(score).__call__.__module__.startswith(Score.__module__.rpartition(".")[0])
    parts = Parts.from_splits(splits, X, split_groups(y)[1]) if known else None
    for places in places_by(trials, lambda trial: type(trial.model)):
        group = [trials[i] for i in places]
        if parts is not None and isinstance(group[0].model, ScoresSplits):
            scores[:, places] = type(group[0].model).split_scores(group, score, X, y, parts)
        else:
            scores[:, places] = [_scores_of(group, X, y, *split, score) for split in splits]
    return scores


def _scores_of(trials, X, y, train, test, score):
    """Train models of one kind on one split and return their exact scores."""
    records, held_out = take_part(X, y, train), take_part(X, y, test)
    return [score_on(score, trial.fitted(*records), *held_out) for trial in trials]


def records_of(X, y, groups=None):
    """Return X and y as tables that can be indexed, of the same number of rows.

    What is not in memory becomes lazy rows, and labels that are cut as they are.
    """
    if groups is not None:
        check_one_label_a_row(X, y)
    X, y = align(X, y)
    if not is_lazy(X):
        X, y = unquoted(indexable, X, y, what="X or y")
    n_rows(X)  # refuses what has none
    return X, y


def records_for_steps(candidates, X, public=None):
    """Return X in its public form, and its PublicRows, which may be given; X and None without steps."""
    if all(candidate.steps is None for candidate in candidates):
        return X, None
    n_columns(X)  # refuses what is no table
    if public is None:
        public = public_rows(X, *(candidate.steps for candidate in candidates))
    # an encoder reads each cell by itself, however it is stored
    return X if public.form.gaps and not is_lazy(X) else public.form.convert(X), public


def names_the_example(plan: Function) -> Function:
    """Decorate a plan: if the row that it makes up serves no step, it says that one may be given."""

    @wraps(plan)
    def naming_plan(self, *args, **params):
        try:
            return plan(self, *args, **params)
        except ValueError as error:
            said, given = str(error), len(args) > 3 or params.get("example") is not None
            if given or not said.endswith((NO_DUMMY, SAME_KIND)):
                raise
        said = said.removesuffix(NO_DUMMY).rstrip(". ")
        raise ValueError(
            f"{said}; give example=, a row that you make up in the form of X, such as a dataframe with "
            "its columns: a plan without one takes a row of numbers without names."
        )

    return cast(Function, naming_plan)


def dummy_records(n_samples, n_features, n_classes, example):
    """Check what is said of records that nobody has seen, for a plan.

    Returns the three counts, and the example: a row of zeros for None.
    """
    counts = [
        check_number(
            name,
            value,
            integer=True,
            low=least,
            low_included=True,
            why=f"it counts {what}",
            instead=f"write an integer of {least} or more",
        )
        for name, value, least, what in (
            ("n_samples", n_samples, 1, "records"),
            ("n_features", n_features, 1, "columns"),
            ("n_classes", n_classes, 2, "labels"),
        )
    ]
    if example is None:
        return *counts, np.zeros((1, counts[1]))
    n_columns(example, "example")
    if n_rows(example) == 0:
        raise ValueError("example has no row; write one dummy row in the form of X.")
    return *counts, example
