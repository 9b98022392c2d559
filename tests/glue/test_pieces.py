"""What is worked on in pieces comes out as if it were worked on at once.

A slip in the second piece (indices that begin anew, sizes or labels of the first piece) shows only in
data larger than any test's. So here the pieces are small, and the results are those of large ones.
"""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import DPHistogramDensity, DPLogisticRegression, DPRidge, SeededNoiseWarning
from dpselect.density import split_scores as density_splits
from dpselect.linear_model import accuracy, problems, solver
from dpselect.linear_model.ridge import decomposition, ridge_noise
from dpselect.mechanisms import exponential_mechanism, noisy_argmax
from dpselect.model_selection import exact_scores as evaluation
from dpselect.model_selection.accuracy_first import methods
from dpselect.rows import cutting
from tests.marks import a_third

from .cases import rows
from .recording import Recorder
from .test_accuracy_first import LEVELS, REDUCTIONS, accuracy_search, data_of
from .test_accuracy_first import MODELS as ACCURACY_MODELS
from .test_searches import Case

# the constant that says how large a piece is, a small value, and words in the names of what uses it
PIECES = {
    "levels of a path": (methods, "CHUNK", 3, ("above_threshold",)),
    "models whose risks are computed": (accuracy, "CHUNK", 4, ("logistic, output",)),
    "counts of splits": (density_splits, "MAX_COUNTS", 40, ("stability, density",)),
    "splits": (evaluation, "MOST_SPLITS", 2, ("stability",)),
    "rows": (cutting, "BLOCK_ELEMENTS", 90, ("",)),
    "columns of coefficients": (solver, "GROUP_ELEMENTS", 40, ("three classes", "fits")),
    "factors of many columns": (problems, "MANY", 1, ("three classes", "fits")),
    "factors of few columns": (problems, "SMALL", 0, ("three classes", "fits")),
    "sums that are kept": (ridge_noise, "MAX_CACHED", 0, ("processed", "sums", "fits")),
    "eigenvectors in one": (decomposition, "LARGE", 1, ("ridge", "sums", "fits")),
}

# splits of different sizes, more than two of them
ORDER = np.random.default_rng(4).permutation(200)
SPLITS = [(np.setdiff1d(ORDER, ORDER[a:b]), ORDER[a:b]) for a, b in ((0, 20), (20, 70), (70, 200))]
SPLITS += [(ORDER[:150], ORDER[150:])]
FIXED = {"cv": SPLITS, "public_splits": True, "n_noise_samples": 2}
ALPHAS = {"alpha": [0.01, 0.03, 0.1, 0.3, 1.0]}
SEARCHES = {
    "stability, three classes": Case(
        "stability", DPLogisticRegression(classes=[0, 1, 2]), ALPHAS, FIXED
    ),
    "stability, density": Case(
        "stability",
        DPHistogramDensity(bounds=(-1, 1)),
        {"bin_width": [0.25, 0.4, 0.5]},
        {**FIXED, "n_noise_samples": 1},
    ),
    "stability, ridge": Case(
        "stability", DPRidge(perturbation="objective", norm="l2", target_range=(-1, 1)), ALPHAS, FIXED
    ),
    "optimal_risk, three classes": Case(
        "optimal_risk", DPLogisticRegression(classes=[0, 1, 2], alpha=0.05)
    ),
    "optimal_risk, ridge": Case(
        "optimal_risk", DPRidge(perturbation="objective", norm="l2", alpha=0.5, target_range=(-1, 1))
    ),
    "processed, ridge": Case(
        "stability",
        DPRidge(norm="l2", target_range=(-1, 1)),
        ALPHAS,
        {"cv": SPLITS[:1], "public_splits": True},
    ),
}
WALKS = [
    (name, method)
    for name in ("logistic, output", "ridge, sums l1", "density, laplace")
    for method in ("above_threshold", "reduced_above_threshold")
] + [("logistic, objective", "doubling"), ("ridge, sums l2", "predict_verify")]


def search_numbers(name):
    """Return what the choice among candidates compared, and the model."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        recorder = Recorder(patch).watch(noisy_argmax, exponential_mechanism)
        case = SEARCHES[name]
        search = case.search().fit(*case.records())
    (choice,) = recorder.calls
    moved = choice.arguments.get("sensitivities", choice.arguments.get("sensitivity"))
    return [choice["scores"], moved, coefficients(search.best_estimator_)], str(search.privacy_)


def walk_numbers(name, method):
    """Return what was read and asked on a path that no model ends."""
    search = accuracy_search(
        name,
        method,
        "excess_risk" if method == "predict_verify" else "risk",
        target=1e-9 if method == "predict_verify" else -5.0 if "density" in name else 1e-6,
        random_state=0,
    )
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        recorder = Recorder(patch)
        for kind in REDUCTIONS:
            recorder.watch_methods(kind, "risks")
        search.fit(*data_of(ACCURACY_MODELS[name]))
    path, risks = search.path_, [np.ravel(call.result) for call in recorder.of("risks")]
    assert not search.reached_ and path["epsilon"][-1] == LEVELS[-1] == search.best_epsilon_
    numbers = [path[name] for name in ("epsilon", "model", "answer", "tested")]
    numbers += [np.concatenate(risks or [[]]), coefficients(search.best_estimator_)]
    return numbers, str(search.privacy_)


def coefficients(model):
    return np.asarray(getattr(model, "coef_", getattr(model, "masses_", 0.0)))


def fit_numbers(_):
    X = rows(200)
    y = np.digitize(X[:, 0], [-0.4, 0.4])
    model = DPLogisticRegression(classes=[0, 1, 2], alpha=0.01, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        ridge = DPRidge(random_state=0, target_range=(-1, 1)).fit(X, X[:, 0])
        return [clone(model).fit(X, y).coef_, ridge.coef_], ""


NUMBERS = {name: (search_numbers, (name,)) for name in SEARCHES}
NUMBERS |= {", ".join(case): (walk_numbers, case) for case in WALKS}
NUMBERS["fits"] = fit_numbers, ("fits",)


@cache
def numbers_at_once(name):
    compute, arguments = NUMBERS[name]
    return compute(*arguments)


@pytest.mark.parametrize(
    "pieces, name",
    a_third(
        [
            (pieces, name)
            for pieces, (*_, words) in PIECES.items()
            for name in NUMBERS
            if any(word in name for word in words)
        ]
    ),
)
def test_pieces_change_nothing(pieces, name, monkeypatch):
    expected, said = numbers_at_once(name)
    monkeypatch.setattr(*PIECES[pieces][:3])
    compute, arguments = NUMBERS[name]
    found, stated = compute(*arguments)
    assert stated == said
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
