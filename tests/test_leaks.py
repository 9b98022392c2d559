"""What a fitted object holds, says and pickles: released values and public facts only.

Two fits with the same noise on neighbouring data sets may differ in what `privacy_` lists as
released, and in nothing else.
"""

import pickle
import struct
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    AccuracyNotReachedError,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    StabilityGridSearchCV,
)
from dpselect.density.accuracy import HistogramAccuracy
from dpselect.linear_model.accuracy import LinearAccuracy
from dpselect.linear_model.ridge.accuracy import RidgeAccuracy
from dpselect.model_selection.strategies import stability as stability_module
from dpselect.preprocessing import BoundedScaler, NormClipper
from dpselect.testing.attempts import attempt

RELEASED = {
    "coef_",
    "intercept_",
    "best_index_",
    "best_params_",
    "gram_",
    "moment_",
    "density_",
    # the eigenvectors of gram_
    "_decomposed",
    # models along a path, and noisy answers
    "path_",
}


@pytest.fixture(scope="module")
def neighbours():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] > 0, 1, 0)
    X_neighbour, y_neighbour = X.copy(), y.copy()
    X_neighbour[7], y_neighbour[7] = [0.123456789, -50.0, 3.0], 1 - y[7]
    return (X, y), (X_neighbour, y_neighbour)


def leaves(value, path=(), seen=None):
    """Yield (path, leaf) for everything that is reachable from `value`."""
    seen = {} if seen is None else seen
    if id(value) in seen:
        return
    seen[id(value)] = value  # kept alive, or its id may be another's
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = enumerate(value)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        parts = enumerate(value.ravel().tolist())
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        parts = vars(value).items()
    else:
        yield path, pickle.dumps(value)
        return
    for name, part in parts:
        yield from leaves(part, (*path, name), seen)


def fitted(estimator, data):
    """Fit with fixed noise; return the object, and all that was printed or warned."""
    estimator = clone(estimator).set_params(random_state=3)
    found = attempt(lambda: estimator.fit(*data))
    if found.error is not None:
        raise found.error
    printed, _, *said = found.said
    return estimator, printed, said


def differences(one, other):
    """Paths of leaves that differ, save those that lie in a released attribute."""
    one, other = dict(leaves(one)), dict(leaves(other))
    differing = {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}
    return {path for path in differing if not RELEASED & set(map(str, path))}


def holds(estimator, numbers):
    """Whether the pickle or the representation of `estimator` holds one of `numbers`.

    A pickle holds texts as they are, so what any attribute says is in it, too.
    """
    content = pickle.dumps(estimator) + repr(estimator).encode()
    return any(
        struct.pack("<d", number) in content
        or struct.pack(">d", number) in content
        or repr(float(number)).encode() in content
        for number in numbers
    )


def handed_over(search):
    """What it hands over to those who have no dpselect, or None."""
    chosen = getattr(search, "best_estimator_", None)
    return None if chosen is None or hasattr(chosen, "density_") else search.to_sklearn()


MODEL = DPLogisticRegression(epsilon=1.0, alpha=0.1, classes=[0, 1])
PIPELINE = make_pipeline(
    BoundedScaler((-60, 60)), NormClipper(), RBFSampler(gamma=1.0, n_components=4), clone(MODEL)
)
ESTIMATORS = [
    StabilityGridSearchCV(DPRidge(target_range=(-1, 1)), {"alpha": [0.01, 0.1]}, epsilon=1e6),
    *(
        StabilityGridSearchCV(clone(MODEL), {"alpha": [0.1, 100.0]}, epsilon=50.0, strategy=strategy)
        for strategy in (
            "data_independent",
            "optimal_risk",
            "budget_split",
            "data_split",
            "random_stopping",
            "random",
        )
    ),
    # so much to gain that the same candidate is chosen on both data sets
    StabilityGridSearchCV(
        clone(MODEL), {"alpha": [0.1, 100.0]}, epsilon=50.0, strategy="stability", verbose=1
    ),
    StabilityGridSearchCV(
        PIPELINE,
        {"dplogisticregression__alpha": [0.1, 100.0]},
        epsilon=50.0,
        n_noise_samples=2,
        strategy="stability",
    ),
    StabilityGridSearchCV(
        clone(MODEL), {"alpha": [0.1, 100.0]}, epsilon=50.0, strategy="stability", refit=False
    ),
]
OUTPUT = clone(MODEL).set_params(perturbation="output")
DENSITY = DPHistogramDensity(bounds=(-4, 4), bin_width=2.0)


def accuracy_first(estimator, method, criterion="excess_risk", target=0.1, **parameters):
    name = "epsilon" if estimator is not PIPELINE else "dplogisticregression__epsilon"
    return AccuracyFirstSearchCV(
        estimator,
        {name: np.geomspace(0.03, 3000, 6)},
        target=target,
        criterion=criterion,
        method=method,
        delta=1e-6,
        **parameters,
    )


# levels so far apart that the same one is found on both data sets
CERTIFIED = [
    accuracy_first(estimator, "certified")
    for estimator in (
        DPRidge(alpha=0.1, target_range=(-1, 1)),
        MODEL,
        clone(MODEL).set_params(classes=None),
        PIPELINE,
        DENSITY,
        DPHuberRegressor(alpha=0.1, target_range=(0, 1)),
    )
]
TESTED = [
    accuracy_first(DPRidge(alpha=0.1, target_range=(-1, 1)), "above_threshold"),
    accuracy_first(DPRidge(alpha=0.1, target_range=(-1, 1)), "predict_verify"),
    accuracy_first(
        DPRidge(alpha=0.1, target_range=(-1, 1)),
        "doubling",
        criterion="clipped_squared_error",
        target=0.6,
    ),
    accuracy_first(DPRidge(alpha=0.1, perturbation="objective", target_range=(-1, 1)), "doubling"),
    accuracy_first(
        DPRidge(alpha=0.1, perturbation="output", norm="l2", target_range=(-1, 1)), "brownian"
    ),
    accuracy_first(OUTPUT, "reduced_above_threshold"),
    accuracy_first(OUTPUT, "predict_verify", criterion="risk", target=0.9),
    accuracy_first(MODEL, "predict_verify", criterion="brier", target=0.4),
    accuracy_first(PIPELINE, "doubling"),
    accuracy_first(DPLinearSVC(alpha=0.1, classes=[0, 1], perturbation="output"), "doubling"),
    accuracy_first(DENSITY, "above_threshold", target=0.01),
    accuracy_first(clone(DENSITY).set_params(noise="discrete_laplace"), "doubling", target=0.01),
]
ALL = [*ESTIMATORS, *CERTIFIED, *TESTED]


@pytest.mark.parametrize("estimator", ALL, ids=lambda e: getattr(e, "strategy", repr(e)[:50]))
def test_nothing_but_what_was_released_depends_on_a_record_and_none_is_kept(estimator, neighbours):
    one, printed, said = fitted(estimator, neighbours[0])
    other, printed_neighbour, said_neighbour = fitted(estimator, neighbours[1])
    assert differences(one, other) == set()
    assert differences(*map(handed_over, (one, other))) == set()
    assert (printed, said) == (printed_neighbour, said_neighbour)
    for attribute in ("coef_", "density_"):
        model = getattr(one, "best_estimator_", one)
        # the comparison sees differences; data_split may have trained on other records
        if hasattr(model, attribute) and getattr(estimator, "strategy", "") != "data_split":
            twin = getattr(other, "best_estimator_", other)
            assert (getattr(model, attribute) != getattr(twin, attribute)).any()
    X, _ = neighbours[0]
    assert not holds(one, X.ravel()) and not holds(handed_over(one), X.ravel())
    assert not any(repr(float(number)) in text for number in X.ravel() for text in said)


def test_no_exact_score_is_kept(neighbours, monkeypatch):
    scores = []
    original = stability_module.exact_scores

    def spy(*args, **kwargs):
        scores.append(original(*args, **kwargs))
        return scores[-1]

    monkeypatch.setattr(stability_module, "exact_scores", spy)
    for estimator in ESTIMATORS[-3:]:
        one, printed, _ = fitted(estimator, neighbours[0])
        numbers = [*scores[-1], *(-scores[-1])]
        assert len(scores[-1]) == 2 and not holds(one, numbers)
        assert not any(repr(float(number)) in printed for number in numbers)


@pytest.fixture
def reductions(monkeypatch):
    """Every Reduction that is made: what it holds is exact."""
    made = []
    for form in (RidgeAccuracy, LinearAccuracy, HistogramAccuracy):

        def spy(self, *args, original=form.reduction):
            made.append(original(self, *args))
            return made[-1]

        monkeypatch.setattr(form, "reduction", spy)
    return made


def exact_numbers(reduction, models):
    """The exact numbers of a search that are long enough to be told from public ones."""
    names = ("minimiser", "minimum", "energy", "masses")
    exact = [getattr(reduction, name) for name in names if hasattr(reduction, name)]
    if hasattr(reduction, "sums"):  # of a regression
        exact += [reduction.sums.values * reduction.sums.units, *reduction.sums.means]
    exact += [reduction.risks(models), reduction.excesses(models)]
    numbers = np.unique(np.abs(np.concatenate([np.ravel(part) for part in exact])))
    numbers = np.concatenate([numbers, -numbers, np.sqrt(numbers)])
    return [number for number in numbers if len(repr(float(number))) > 12]


@pytest.mark.parametrize("estimator", TESTED, ids=lambda e: getattr(e, "strategy", repr(e)[:50]))
def test_no_exact_loss_or_minimiser_is_kept(estimator, neighbours, reductions):
    X, y = neighbours[0]
    # a prime number of records, whose shares are long numbers
    one, printed, said = fitted(estimator, (X[:397], y[:397]))
    (reduction,) = reductions
    numbers = exact_numbers(reduction, one.path_["model"])
    assert len(numbers) > 5 and not holds(one, numbers)
    shown = [printed, *said, str(one.privacy_), str(one.plan_)]
    assert not any(repr(float(number)) in text for number in numbers for text in shown)
    one.kept_ = {"excess": float(numbers[0])}
    assert holds(one, numbers)  # the check sees it


@pytest.mark.parametrize("estimator", CERTIFIED[:2], ids=lambda e: getattr(e, "strategy", repr(e)[:50]))
def test_a_certified_search_keeps_no_minimiser(estimator, neighbours):
    one, _, _ = fitted(estimator, neighbours[0])
    exact = clone(one.best_estimator_).set_params(epsilon=float("inf")).fit(*neighbours[0])
    assert not holds(one, [*np.ravel(exact.coef_), *np.ravel(exact.intercept_)])


# (discrete Laplace noise is 0 at a large epsilon, and then no target is too small)
@pytest.mark.parametrize(
    "estimator", [*CERTIFIED, *TESTED[:-1]], ids=lambda e: getattr(e, "strategy", repr(e)[:50])
)
def test_a_failed_search_says_what_it_cost_and_nothing_else(estimator, neighbours, reductions):
    errors, left = [], []
    for X, y in neighbours:
        search = clone(estimator).set_params(target=1e-12, random_state=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(AccuracyNotReachedError) as caught:
                search.fit(X[:397], y[:397])
        errors.append(caught.value)
        assert caught.value.__context__ is None and caught.value.__cause__ is None
        assert search.privacy_ == caught.value.privacy
        said = {name: value for name, value in vars(search).items() if name.endswith("_")}
        assert said.keys() == {"privacy_", "plan_", "method_", "reached_"}
        left.append(pickle.dumps(said))
    assert left[0] == left[1]
    one, other = errors
    assert (pickle.dumps(one), repr(one), str(one)) == (pickle.dumps(other), repr(other), str(other))
    assert vars(one).keys() == {"privacy"} and one.privacy == other.privacy
    if reductions:
        models = reductions[0].read(3000.0)[None]
        numbers = [*exact_numbers(reductions[0], models), *neighbours[0][0].ravel()]
        assert not holds(one, numbers) and not any(repr(float(x)) in str(one) for x in numbers)


# --- twins that leak, to see that they are caught


class KeepsARow(DPLogisticRegression):
    def fit(self, X, y):
        super().fit(X, y)
        self.first_row_ = X[7].copy()
        return self


class KeepsACount(DPLogisticRegression):
    def fit(self, X, y):
        super().fit(X, y)
        self._positives = {"count": int(np.sum(y))}
        return self


class Warns(DPLogisticRegression):
    def fit(self, X, y):
        super().fit(X, y)
        warnings.warn(f"the largest value is {X.max()}", stacklevel=2)
        return self


@pytest.mark.parametrize("kind", [KeepsARow, KeepsACount])
def test_a_leaking_twin_is_caught(kind, neighbours):
    estimator = kind(classes=[0, 1])
    one, other = (fitted(estimator, data)[0] for data in neighbours)
    assert differences(one, other)


def test_a_row_that_is_handed_over_is_found(neighbours):
    plains = []
    for X, y in neighbours:
        plain = fitted(clone(MODEL), (X, y))[0].to_sklearn()
        plain.named_steps["columns"].max_abs_ = X[7].copy()
        plains.append(plain)
    assert differences(*plains) and holds(plains[0], neighbours[0][0].ravel())


def test_a_kept_row_is_found(neighbours):
    one, _, _ = fitted(KeepsARow(classes=[0, 1]), neighbours[0])
    assert holds(one, neighbours[0][0].ravel())


def test_a_talking_twin_is_caught(neighbours):
    _, _, said = fitted(Warns(classes=[0, 1]), neighbours[0])
    _, _, said_neighbour = fitted(Warns(classes=[0, 1]), (neighbours[0][0] * 2, neighbours[0][1]))
    assert said != said_neighbour
