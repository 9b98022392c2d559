"""What is stated is a function of public numbers, whatever is learned from the records on the way.

Data sets of one public shape (numbers of records, columns, classes and persons) give one statement, one
reservation and one entry of a ledger, with all events from which finer totals follow.
"""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline

from dpselect import (
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    PrivacyLedger,
    PrivacyLoss,
    StabilityGridSearchCV,
    privacy_of,
)
from dpselect.accounting.events import ChoiceEvent
from dpselect.model_selection import grid_search as search_module
from dpselect.model_selection import stages
from dpselect.model_selection.strategies import held_out
from dpselect.model_selection.strategies.auto import Auto
from dpselect.preprocessing import DPBoundsScaler

from .covering import covering_array

N = 400
MODELS = {
    "logistic": (DPLogisticRegression, {"classes": [0, 1]}, {"max_derivative": [None, "auto", 0.75]}),
    "three": (DPLogisticRegression, {"classes": [0, 1, 2]}, {"class_weight": [None, {0: 2.0}]}),
    "svc": (DPLinearSVC, {"classes": [0, 1]}, {"huber_width": [0.1, 0.5]}),
    "huber": (DPHuberRegressor, {"target_range": (0, 2)}, {"intercept_scaling": [0.5, 1.0]}),
    "poisson": (DPPoissonRegressor, {"target_bound": 3.0}, {"intercept_scaling": [0.5, 1.0]}),
    "ridge": (DPRidge, {"target_range": (0, 2)}, {"fit_intercept": [True, False]}),
}
AXES = {
    "model": list(MODELS),
    "learned": [
        ("data_norm",),
        ("data_norm_l1",),
        ("data_norm", "data_norm_l1"),
        ("base_rate",),
        ("data_norm", "base_rate"),
    ],
    "norm": ["auto", "l2", "l1"],
    "intercept": [True, False],
    "perturbation": ["objective", "output", "covariance"],
    "alpha": ["auto", 0.005, 0.5],
    "delta": [0.0, 1e-5],
    "step": [None, "pure", "delta"],
    "place": [
        "fit",
        "auto",
        "stability",
        "optimal_risk",
        "data_independent",
        "budget_split",
        "data_split",
        "random_stopping",
        "random",
    ],
    "grid": ["none", "alpha", "own"],
    "search_delta": [0.0, 1e-6],
    "evaluation": [None, 0.2],
    "persons": [False, True],
    "epsilon": [0.5, 4.0],
    "n_features": [2, 30],
}
# the same public shape, and everything else as different as it can be
DATA = [
    (1e-6, "even"),
    (1.0, "short but for some"),
    (1.0, "even"),
    (40.0, "one entry a row"),
    (1e5, "long tail"),
]


def settled(row):
    """Return a row of settings without those that others of it leave without a meaning."""
    row = dict(row)
    if row["model"] == "ridge":
        row["alpha"] = row["alpha"] if row["alpha"] != "auto" else 0.05
        row["delta"] = row["delta"] if row["perturbation"] == "covariance" else 0.0
    elif row["perturbation"] == "covariance":
        row["perturbation"] = "objective"
    if row["norm"] == "l1":
        row["delta"] = 0.0
    if "base_rate" in row["learned"]:
        if row["model"] not in ("logistic", "three", "poisson"):
            row["learned"] = ("data_norm",)
        row["intercept"] = True
    if row["place"] == "fit":
        row |= {"grid": "none", "search_delta": 0.0, "evaluation": None}
    if row["place"] == "data_independent" and row["grid"] == "own":
        row["grid"] = "alpha"
    if row["place"] == "random_stopping" and row["delta"]:
        row["search_delta"] = 1e-6
    return row


def configurations(n_arrays):
    """Return settings in which any two values meet that can."""
    arrays = [covering_array(AXES, lambda *pair: True, seed) for seed in range(n_arrays)]
    return list({str(row): row for row in map(settled, itertools.chain(*arrays))}.values())


def model_of(row):
    kind, own, _ = MODELS[row["model"]]
    given = {name: "auto" for name in row["learned"]}
    return kind(
        row["epsilon"],
        **own,
        **given,
        norm=row["norm"],
        fit_intercept=row["intercept"],
        perturbation=row["perturbation"],
        alpha=row["alpha"],
        delta=row["delta"],
    )


def search_of(row, step=None):
    """Return what is fitted: the model, perhaps behind a step that learns privately, or in a search."""
    model, (_, _, grid) = model_of(row), MODELS[row["model"]]
    name = type(model).__name__.lower()
    if step is None and row["step"]:
        step = DPBoundsScaler(0.4 * row["epsilon"], delta=1e-7 if row["step"] == "delta" else 0.0)
    if step is not None:
        model, name = make_pipeline(step, model), f"{name}__"
    else:
        name = ""
    if row["place"] == "fit":
        return model
    grid = {"none": {}, "alpha": {"alpha": [0.01, 0.5]}, "own": grid}[row["grid"]]
    return StabilityGridSearchCV(
        model,
        {f"{name}{key}": values for key, values in grid.items()},
        epsilon=row["epsilon"],
        delta=row["search_delta"],
        strategy=row["place"],
        cv=2,
        evaluation=row["evaluation"],
        scoring="clipped_squared_error" if row["model"] in ("huber", "ridge") else None,
    )


def records_of(scale, kind, p, n_classes):
    """Return N records of two rows a person, the same labels for all scales but for their order."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(N, p))
    if kind == "short but for some":
        X[N // 10 :] *= 1e-6
    if kind == "one entry a row":
        X *= np.arange(N)[:, None] % p == np.arange(p)
    if kind == "long tail":
        X = rng.standard_t(1.5, size=(N, p))
    y = np.arange(N) % n_classes if kind == "even" else np.sort(np.arange(N) // 20 % n_classes)
    return scale * X, y


def stated(loss):
    """Return a loss without its words, which may name what was chosen."""
    return replace(loss, label="", parts=tuple(map(stated, loss.parts)))


def statements(row, folder, data=DATA, step=None):
    """Return what is stated and what a ledger counts, for each data set; one refusal for all is one."""
    found = []
    for number, (scale, kind) in enumerate(data):
        n_classes = 3 if row["model"] == "three" else 2
        X, y = records_of(scale, kind, row["n_features"], n_classes)
        groups = {"groups": np.arange(N) // 2} if row["persons"] else {}
        fitted = search_of(row, step)
        if groups and row["place"] == "fit" and row["step"]:
            groups = {f"{name}__groups": ids for name, _ in fitted.steps for ids in groups.values()}
        ledger = PrivacyLedger(
            folder / f"{number}",
            epsilon=100.0,
            delta=0.5,
            adjacency=("replace all rows of one person" if row["persons"] else "replace one record"),
        )
        with ledger, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                fitted.fit(X, y, **groups)
            except (ValueError, TypeError) as refusal:
                found.append((type(refusal), str(refusal)))
                continue
        entries = [
            (e.reserved_epsilon, e.reserved_delta, e.epsilon, e.delta, stated(e.statement))
            for e in ledger.history()
        ]
        found.append((stated(privacy_of(fitted)), entries, ledger.spent()))
    return found


# the fast tests take a few of the settings in turn; all of them are at least 80 that are fitted
FEW = configurations(1)[::3]


@pytest.mark.parametrize("row", FEW, ids=lambda row: f"{row['model']}-{row['place']}")
def test_what_is_stated_is_the_same_for_all_records_of_one_shape(row, tmp_path):
    first, *others = statements(row, tmp_path, DATA[::2])
    assert all(found == first for found in others)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_what_is_stated_is_the_same_in_many_settings(part, tmp_path):
    rows, fitted = configurations(2)[part::4], 0
    for number, row in enumerate(rows):
        folder = tmp_path / str(number)
        folder.mkdir()
        first, *others = statements(row, folder)
        assert all(found == first for found in others), row
        fitted += not isinstance(first[0], type)
    assert fitted >= 20


class FewColumns(TransformerMixin, BaseEstimator):
    """Chooses columns by the records, and with them how many choices and how much noise there are."""

    releases_privately = True

    def __init__(self, epsilon=0.4, random_state=None):
        self.epsilon, self.random_state = epsilon, random_state

    def fit(self, X, y=None):
        self.privacy_ = PrivacyLoss(float(self.epsilon), event=ChoiceEvent(self.epsilon))
        self.columns_ = slice(0, 30 if np.median(np.abs(X)) > 1.0 else 2)
        return self

    def transform(self, X):
        return X[:, self.columns_]


BASE = {
    "model": "svc",
    "learned": ("data_norm",),
    "norm": "l2",
    "intercept": False,
    "delta": 1e-5,
    "perturbation": "objective",
    "alpha": 0.5,
    "step": None,
    "place": "auto",
    "grid": "own",
    "search_delta": 1e-6,
    "evaluation": None,
    "persons": False,
    "epsilon": 4.0,
    "n_features": 30,
}


def decide_anew(patch):
    """Let what was learned decide which strategy is taken."""
    patch.setattr(
        Auto,
        "after_learning",
        lambda self, candidates: Auto(replace(self.problem, candidates=candidates, learned=True)),
    )


def state_what_was_used(patch):
    """Let the delta and the event be those of the model that came out."""
    patch.setattr(stages, "loss_of_any_model", lambda loss, *args: loss)


def state_what_models_used(patch):
    """Let the delta be that of models which are trained to be chosen among."""
    patch.setattr(held_out, "parameters", lambda model: {})


def state_all_parts(patch):
    """Let the parts of a search whose columns were learned be seen."""
    patch.setattr(search_module, "most_of", lambda loss, most: loss)


TWINS = {
    decide_anew: (BASE, None),
    state_what_was_used: (
        BASE
        | {
            "model": "logistic",
            "norm": "auto",
            "learned": ("data_norm", "data_norm_l1"),
            "place": "random",
        },
        None,
    ),
    state_what_models_used: (
        BASE
        | {
            "model": "logistic",
            "norm": "auto",
            "learned": ("data_norm", "data_norm_l1"),
            "place": "data_split",
        },
        None,
    ),
    state_all_parts: (BASE | {"learned": ("data_norm",), "grid": "none"}, FewColumns()),
}


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_each_way_to_state_what_the_records_decided_is_seen(twin, tmp_path):
    row, step = TWINS[twin]
    for name in ("right", "twin"):
        (tmp_path / name).mkdir()
    first, *others = statements(row, tmp_path / "right", step=step)
    assert all(found == first for found in others) and not isinstance(first[0], type)
    with pytest.MonkeyPatch.context() as patch:
        twin(patch)
        first, *others = statements(row, tmp_path / "twin", step=step)
    assert any(found != first for found in others)
