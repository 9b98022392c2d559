"""What is said of a release, and done with it, goes by the parameters of its fit."""

import datetime
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from dpselect import (
    AccuracyFirstDisplay,
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    PrivateModel,
    SeededNoiseWarning,
    StabilityGridSearchCV,
    TermsDisplay,
    ThresholdoutFeatureSelector,
    calibrated,
    coef_interval,
    evaluate,
    privacy_report,
)
from dpselect.base import estimator
from dpselect.base.learned_numbers import epsilon_of_fit
from dpselect.export import to_onnx
from dpselect.linear_model.ridge import estimator as ridge
from dpselect.noise import root_stream
from dpselect.preprocessing import DPBoundsScaler, tabular_pipeline
from dpselect.utils import parameters

from .marks import a_third
from .private_model.other_library import SignedSum

DAY = datetime.date(2030, 1, 31)
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(3000, 2))
Y = (X[:, 0] > 0).astype(int)
ROWS = 2 * RNG.uniform(-1, 1, size=(50, 2))
SCHEMA = {0: (-1, 1), 1: (-1, 1)}
LOGISTIC = DPLogisticRegression(classes=[0, 1], alpha=0.01)
DECLARED = dict(adjacency="replace one record", classes=[0, 1], classes_parameter="labels")
MODELS = {
    "logistic": LOGISTIC,
    "capped": clone(LOGISTIC).set_params(max_derivative=0.5, base_rate=0.3),
    "learned": DPLogisticRegression(4.0, classes=[0, 1], data_norm="auto"),
    "svc": DPLinearSVC(classes=[0, 1]),
    "huber": DPHuberRegressor(target_range=(0, 1)),
    "poisson": DPPoissonRegressor(target_bound=2.0),
    "ridge": DPRidge(target_range=(0, 1)),
    "ridge by output": DPRidge(target_range=(0, 1), perturbation="output"),
    "density": DPHistogramDensity(bounds=(-1, 1), bin_width=0.5),
    "bounds": DPBoundsScaler(),
    "table": tabular_pipeline(SCHEMA, LOGISTIC, expansion="linear"),
    "steps": make_pipeline(DPBoundsScaler(), LOGISTIC),
    "search": StabilityGridSearchCV(LOGISTIC, {"alpha": [0.1, 1.0]}, epsilon=2.0),
    "search of steps": StabilityGridSearchCV(
        Pipeline([("bounds", DPBoundsScaler(0.5)), ("model", LOGISTIC)]),
        {"model__alpha": [0.1]},
        epsilon=2.0,
    ),
    "accuracy first": AccuracyFirstSearchCV(
        clone(LOGISTIC),
        {"epsilon": [1.0, 2.0]},
        target=0.9,
        on_failure="last",
    ),
    "private model": PrivateModel(SignedSum(bound=1.0), **DECLARED),
    "feature selector": ThresholdoutFeatureSelector(
        DPLogisticRegression(np.inf, classes=[0, 1]), n_features_to_select=1, noise_rate=0.05
    ),
}
# what scikit-learn's own Pipeline reads of itself, what refuses to predict, and the form of columns
STRUCTURE = {"steps", "memory", "transform_input", "verbose", "refit", "sparse_output"}


def fitted(name):
    return clone(MODELS[name]).fit(X, Y)


def attempt(ask):
    """Return what is answered, or the kind of error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        try:
            return ask()
        except (AttributeError, TypeError, ValueError, NotImplementedError) as error:
            return type(error)


def answers(model):
    """All that is said of a fitted model and done with it."""
    inner = getattr(model, "best_estimator_", model)
    asked = {
        "report": lambda: privacy_report(model, date=DAY).to_json(),
        "report of the inner one": lambda: privacy_report(inner, date=DAY).to_json(),
        "predict": lambda: model.predict(ROWS),
        "decisions": lambda: model.decision_function(ROWS),
        "probabilities": lambda: model.predict_proba(ROWS),
        "transform": lambda: model.transform(ROWS),
        "densities": lambda: model.score_samples(ROWS),
        "squares": lambda: model.squared_integral(),
        "norms": lambda: model.row_bounds(),
        "epsilon": lambda: epsilon_of_fit(last(inner)),
        "intervals": lambda: coef_interval(
            inner, X.copy(), Y, epsilon=1.0, n_samples=3000, random_state=root_stream(0)
        ).confidence_interval(),
        "evaluation": lambda: repr(
            evaluate(model, ROWS, Y[:50], epsilon=1.0, random_state=root_stream(0))
        ),
        "calibrated": lambda: calibrated(
            model, evaluate(model, ROWS, Y[:50], epsilon=1.0, random_state=root_stream(0))
        ).predict_proba(ROWS),
        "plain": lambda: plain(model.to_sklearn()),
        "graph": lambda: to_onnx(model).SerializeToString(),
        "terms": lambda: TermsDisplay.from_estimator(inner, n_samples=3000).to_frame().to_numpy(),
        "path": lambda: vars(AccuracyFirstDisplay.from_search(model)),
        "another alpha": lambda: model.post_process(alpha=0.5).predict(ROWS),
    }
    return {name: attempt(ask) for name, ask in asked.items()}


def last(model):
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def plain(model):
    return (model.predict if hasattr(model, "predict") else model.transform)(ROWS)


def other(name, value):
    """Another value, one that is in the range of many parameters where there is one."""
    if name.endswith("epsilon"):
        return 0.1
    if name.endswith(("random_state", "ledger")):
        return value  # they are not kept, and change nothing of what was released
    return value / 2 + 0.25 if isinstance(value, float) else object()


def changed(model):
    """Set all parameters to others, one after the other."""
    for name, value in model.get_params(deep=True).items():
        kind = name.rpartition("__")[2]
        if kind in STRUCTURE or hasattr(value, "get_params"):
            continue
        model.set_params(**{name: other(name, value)})
    return model


def without_noise(model):
    """Set all epsilons to inf, with which a loss may be another."""
    names = model.get_params(deep=True)
    return model.set_params(**{name: np.inf for name in names if name.rpartition("__")[2] == "epsilon"})


def check_goes_by_fit(model, change=changed):
    before = answers(model)
    assert sum(not isinstance(found, type) for found in before.values()) >= 3
    after = answers(change(model))
    different = [name for name in before if not equal(before[name], after[name])]
    assert not different, different


def equal(one, another):
    try:
        np.testing.assert_equal(one, another)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("name", MODELS)
def test_what_is_said_and_done_goes_by_the_fit(name):
    check_goes_by_fit(fitted(name))


@pytest.mark.parametrize("name", MODELS)
def test_it_goes_by_the_noise_of_the_fit(name):
    check_goes_by_fit(fitted(name), change=without_noise)


def test_a_loss_of_now_is_caught(monkeypatch):
    for module in (estimator, ridge):
        monkeypatch.setattr(module, "keep_params", lambda model: None)
    for name in ("logistic", "learned"):
        with pytest.raises(AssertionError, match="decisions.*probabilities.*intervals"):
            check_goes_by_fit(fitted(name), change=without_noise)


@pytest.mark.parametrize("name", MODELS)
def test_so_it_is_once_unpickled(name):
    check_goes_by_fit(pickle.loads(pickle.dumps(changed(fitted(name)))))


@pytest.mark.parametrize("name", a_third(list(MODELS)))
def test_parameters_that_are_not_kept_are_caught(name, monkeypatch):
    for module in (estimator, ridge):
        monkeypatch.setattr(module, "keep_params", lambda model: None)
    model = fitted(name)
    with pytest.raises(AssertionError):
        check_goes_by_fit(model)


def test_no_seed_is_kept():
    """Whoever gets the model could draw its noise again, though its owner has forgotten the seed."""
    steps = make_pipeline(DPBoundsScaler(0.5, random_state=7777777), LOGISTIC)
    search = StabilityGridSearchCV(steps, {}, epsilon=2.0, random_state=6666666)
    with pytest.warns(SeededNoiseWarning):
        search.fit(X, Y)
    search.set_params(random_state=None, estimator__dpboundsscaler__random_state=None)
    model = clone(LOGISTIC).set_params(random_state=5555555)
    with pytest.warns(SeededNoiseWarning):
        model.fit(X, Y).set_params(random_state=None)

    def keeps_a_seed():
        return any(
            seed in repr(vars(released)[parameters.KEPT])
            for released in (search, model)
            for seed in ("7777777", "6666666", "5555555")
        )

    assert not keeps_a_seed()
    vars(model)[parameters.KEPT]["random_state"] = 5555555
    assert keeps_a_seed()


def test_another_fit_goes_by_its_own_parameters():
    model = clone(LOGISTIC).set_params(epsilon=5.0).fit(X, Y).set_params(epsilon=0.5)
    assert "| epsilon | 5 |" in str(privacy_report(model)) and epsilon_of_fit(model) == 5.0
    model.fit(X, Y)
    assert "| epsilon | 0.5 |" in str(privacy_report(model)) and epsilon_of_fit(model) == 0.5
    with pytest.raises(ValueError, match="NaN"):
        model.set_params(epsilon=9.0).fit(np.full((3, 2), np.nan), [0, 1, 0])
    assert epsilon_of_fit(model) == 0.5
    assert clone(model).epsilon == 9.0 and not hasattr(clone(model), parameters.KEPT)
    # what was written into a list or a grid since is not shown either
    search = clone(MODELS["search"])
    grid = {"alpha": [0.1, 1.0]}
    search.set_params(param_grid=grid).fit(X, Y)
    before = privacy_report(search, date=DAY)
    grid["tol"] = [1e-11]
    assert privacy_report(search, date=DAY) == before


def check_post_processed(model):
    other = model.post_process(alpha=0.5)
    again = other.set_params(alpha=7.0).post_process()
    assert again.alpha == 0.5
    np.testing.assert_array_equal(again.coef_, other.coef_)
    assert "| alpha | 0.5 |" in str(privacy_report(other))


def test_a_post_processed_model_goes_by_its_own_parameters(monkeypatch):
    model = clone(MODELS["ridge"]).fit(X, X[:, 0])
    check_post_processed(model)
    # broken variant: those of the fit that released the sums
    monkeypatch.setattr(ridge, "keep_params", lambda model: None)
    with pytest.raises(AssertionError):
        check_post_processed(model)
