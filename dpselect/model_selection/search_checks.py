"""The parameters of a private search, checked before any data is touched."""

from ..metrics import get_score
from ..metrics.scores import OF_RANGE
from ..noise import check_random_state
from ..preprocessing.pipeline_check import check_trusted_steps
from ..utils.validation import check_estimator, check_flag, check_n_jobs, check_number
from .sklearn_forms import scores_of, scoring_that_chooses
from .splits import check_splitter
from .strategies import strategy_class


def check_share(share):
    """Refuse a public share of a class that is none."""
    if share is not None:
        check_number(
            "class_share",
            share,
            high=1.0,
            why="it is the share of the records that have the second of two labels",
            instead="write a number between 0 and 1, such as 0.05, or None",
        )


def check_parameters(search):
    """Refuse parameters under which a search with a finite epsilon would not keep its guarantee."""
    check_what_all_searches_have(search)
    check_number(
        "delta",
        search.delta,
        low_included=True,
        high=1.0,
        why="it is the probability with which the bound may fail",
        instead="write 0.0, which certifies the noise that was drawn",
    )
    strategy_class(search.strategy)
    if not (isinstance(search.selection_fraction, str) and search.selection_fraction == "auto"):
        check_number(
            "selection_fraction",
            search.selection_fraction,
            high=1.0,
            why="selection and training share epsilon",
            instead='write a number between 0 and 1, or "auto"',
        )
    check_number(
        "n_noise_samples",
        search.n_noise_samples,
        integer=True,
        why="scores are averaged over them",
        instead="write an integer of 1 or more",
    )
    scoring = scoring_that_chooses(search)
    if scores_of(search) is None and not isinstance(search.refit, bool):
        raise ValueError(
            "refit must be True or False: names and functions choose by exact scores, which "
            "are not released; write refit=True."
        )
    check_flag("return_train_score", search.return_train_score, why="scores of training are exact")
    if search.return_train_score:
        raise ValueError(
            "return_train_score=True would release exact scores; write return_train_score=False."
        )
    check_n_jobs(search.n_jobs)
    # names of scores that ask for the model's range are looked at with the model
    if scoring is not None and scoring not in list(OF_RANGE):
        get_score(scoring)


def check_what_all_searches_have(search):
    """Refuse an estimator, splits, steps or a random state that break the guarantee."""
    check_estimator(search.estimator)
    check_flag("public_splits", search.public_splits, why="it is your word that splits are public")
    check_trusted_steps(search.trusted_steps)
    check_splitter(search.cv, search.public_splits)
    check_random_state(search.random_state)
    if not isinstance(search.verbose, bool):
        check_number(
            "verbose",
            search.verbose,
            low_included=True,
            why="it says whether progress is told",
            instead="write 0 for none, or 1",
        )
