"""What holds for the first and the last of several parts holds for those between them, too.

Lists of one or two parts hide a loop that ends early. Here every list has four, and what is
looked for stands at each place in turn.
"""

import itertools
import json
import math
import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingRegressor
from sklearn.impute import SimpleImputer
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures, StandardScaler

from dpselect import (
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    PrivacyLedger,
    PrivacyLoss,
    SeededNoiseWarning,
    StabilityGridSearchCV,
    privacy_of,
)
from dpselect.accounting.joint import added_losses
from dpselect.accounting.totals import composed_epsilon
from dpselect.base.estimator import Trial
from dpselect.density.split_scores import density_split_scores
from dpselect.ledger.spending import current_ledger
from dpselect.metrics import IntegratedSquaredErrorScore
from dpselect.model_selection.accuracy_first.limit import Limit
from dpselect.model_selection.accuracy_first.target_checks import check_steps_afforded
from dpselect.model_selection.budget import Budget, steps_at_most
from dpselect.model_selection.candidates import make_candidates, places_by
from dpselect.model_selection.private_steps import check_grid, freeze, last_private
from dpselect.model_selection.row_steps import fit, public_rows
from dpselect.model_selection.splits import make_splits
from dpselect.model_selection.strategies import data_independent, post_processing
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler, check_pipeline_privacy
from dpselect.preprocessing.kinds_check import check_kinds
from dpselect.preprocessing.pipeline_check import private_parts
from dpselect.preprocessing.table_form import TableForm
from dpselect.rows import Parts

from .cases import key, rows

PLACES = range(4)
EPSILONS = [0.5, 0.25, 2.0, 1.0]


def chain(parts):
    return Pipeline([(f"p{i}", part) for i, part in enumerate(parts)])


def union(parts):
    return FeatureUnion([(f"p{i}", part) for i, part in enumerate(parts)])


def columns(parts):
    named = [(f"p{i}", part, [i]) for i, part in enumerate(parts)]
    return ColumnTransformer(named, sparse_threshold=0)


def with_remainder(parts):
    named = [(f"p{i}", part, [i]) for i, part in enumerate(parts[:-1])]
    return ColumnTransformer(named, remainder=parts[-1], sparse_threshold=0)


CONTAINERS = [chain, union, columns, with_remainder]


def model_after(steps):
    return make_pipeline(steps, DPLogisticRegression(4.0, classes=[0, 1]))


def one_at(place, part, others):
    return [part if i == place else others() for i in PLACES]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("place", PLACES)
def test_a_step_that_learns_is_refused_wherever_it_stands(container, place):
    parts = one_at(place, StandardScaler(), BoundedScaler)
    for steps in (container(parts), chain(one_at(place, container(parts), BoundedScaler))):
        with pytest.raises(ValueError, match="StandardScaler.*learns from the data"):
            check_pipeline_privacy(model_after(steps))
    with pytest.raises(ValueError, match="StandardScaler.*learns from the data"):
        check_pipeline_privacy(Pipeline([*chain(parts).steps, ("model", DPLogisticRegression())]))
    check_pipeline_privacy(model_after(container(parts)), [StandardScaler])


@pytest.mark.parametrize("container", [columns, with_remainder])
@pytest.mark.parametrize("place", PLACES)
def test_what_took_the_place_of_a_fitted_part_is_checked(container, place):
    steps = container([BoundedScaler((0, 1)) for _ in PLACES]).fit(np.zeros((2, 4)))
    check_pipeline_privacy(model_after(steps))
    name, _, chosen = steps.transformers_[place]
    steps.transformers_[place] = name, StandardScaler(), chosen
    with pytest.raises(ValueError, match="StandardScaler.*learns from the data"):
        check_pipeline_privacy(model_after(steps))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("bad", [([0, 1], []), ([], [0, 1]), ([0, 1],), ([0, 1], [2], [3])])
def test_every_split_has_two_parts_with_records(place, bad):
    splits = one_at(place, bad, lambda: ([0, 1, 2], [3, 4]))
    with pytest.raises(ValueError, match="cv"):
        make_splits(splits, 5, key("splits"))
    assert len(make_splits([([0, 1, 2], [3, 4])] * 4, 5, key("splits"))) == 4


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "part, chosen, match",
    [
        (BoundedScaler((0, 1)), lambda X: [0], "chooses columns by a function of the data"),
        (PolynomialFeatures(), [0], "sparse_threshold=0"),
    ],
)
def test_a_part_that_looks_at_the_data_is_refused_wherever_it_stands(place, part, chosen, match):
    named = [
        (f"p{i}", part if i == place else BoundedScaler((0, 1)), chosen if i == place else [i])
        for i in PLACES
    ]
    with pytest.raises(ValueError, match=match):
        check_pipeline_privacy(model_after(ColumnTransformer(named)))
    named[place] = named[place][:2]
    with pytest.raises(TypeError, match="must list its steps as tuples"):
        check_pipeline_privacy(model_after(ColumnTransformer(named)))


@pytest.mark.parametrize("place", PLACES)
def test_a_grid_over_a_step_before_the_last_private_one_is_refused(place):
    steps = chain(
        [BoundedScaler((0, 1)), BoundedScaler((0, 1)), BoundedScaler((0, 1)), DPBoundsScaler()]
    ).steps
    estimator = Pipeline([*steps, ("model", DPLogisticRegression(classes=[0, 1]))])
    usual = {"model__data_norm": 1.0}
    points = one_at(place, {**usual, f"p{place}": "passthrough"}, lambda: usual)
    with pytest.raises(ValueError, match=f"varies 'p{place}'"):
        check_grid(estimator, points)
    with pytest.raises(ValueError, match="'steps' at once"):
        check_grid(estimator, one_at(place, {"steps": steps}, lambda: usual))
    check_grid(estimator, [usual] * 4)


@pytest.mark.parametrize("place", PLACES)
def test_what_all_candidates_share_is_asked_of_each(place):
    grids = one_at(place, {"alpha": [0.1], "data_norm": [2.0]}, lambda: {"alpha": [1.0]})
    for grid, shared in ((grids, False), ({"alpha": [0.1, 1.0, 2.0, 3.0]}, True)):
        candidates = make_candidates(DPRidge(target_range=(-1, 1)), grid, trusted_steps=())
        assert len(candidates) == 4 and post_processing.applies(candidates) == shared
        model = DPLogisticRegression(classes=[0, 1])
        candidates = make_candidates(model, grid, trusted_steps=())
        assert data_independent.applies(candidates) == shared


@pytest.mark.parametrize("place", PLACES)
def test_candidates_share_rows_only_if_all_their_steps_agree(place):
    steps = chain([BoundedScaler((0, 1)) for _ in PLACES]).steps
    estimator = Pipeline([*steps, ("model", DPRidge(target_range=(-1, 1)))])
    usual = {f"p{i}__bounds": [(0.0, 1.0)] for i in PLACES}
    grid = {**usual, f"p{place}__bounds": [(0.0, 1.0), (0.0, 2.0)], "model__alpha": [0.1, 1.0]}
    candidates = make_candidates(estimator, grid, trusted_steps=())
    groups = list(places_by(candidates, lambda candidate: candidate.steps_key))
    assert sorted(map(len, groups)) == [2, 2]
    for group in groups:
        assert len({candidates[i].params[f"p{place}__bounds"] for i in group}) == 1


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("place", PLACES)
def test_a_ledger_of_any_part_is_refused(container, place, tmp_path):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=1.0)
    steps = container(one_at(place, DPBoundsScaler(ledger=ledger), DPBoundsScaler))
    with pytest.raises(ValueError, match="ledger"):
        make_candidates(model_after(steps), {}, trusted_steps=())


@pytest.mark.parametrize("container", CONTAINERS)
def test_all_private_parts_draw_their_noise_from_the_seed_of_a_search(container):
    X = np.tile(rows(40, 1), 4)
    found = []
    for _ in range(2):
        estimator = model_after(container([DPBoundsScaler(2.0) for _ in PLACES]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            frozen, losses, _ = freeze(estimator, X, None, key("same"), public_rows(X))
        assert [loss.seeded for loss in losses] == [True] * 4
        found.append([part.bounds_[:1].tolist() for part in private_parts(frozen[0].estimator)])
    assert found[0] == found[1]


def test_results_name_all_parameters():
    grid = {"alpha": [0.1, 1.0], "data_norm": [2.0], "target_range": [(-0.5, 0.5)], "norm": ["l2"]}
    X = rows(40, 2)
    search = StabilityGridSearchCV(DPRidge(target_range=(-1, 1)), grid, strategy="random").fit(
        X, X[:, 0]
    )
    assert {name for name in search.cv_results_ if name.startswith("param_")} == {
        f"param_{name}" for name in grid
    }
    assert search.best_estimator_.get_params().items() >= search.best_params_.items()


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_losses_of_all_private_parts_are_counted(container):
    parts = [DPBoundsScaler(epsilon) for epsilon in EPSILONS]
    steps = container(parts)
    assert private_parts(steps) == parts
    for estimator in (
        model_after(steps),
        Pipeline([*chain(parts).steps, ("model", DPLogisticRegression(4.0))]),
    ):
        assert [loss.epsilon for loss in steps_at_most(estimator)] == EPSILONS
        budget = Budget(8.0).spend(steps_at_most(estimator))
        assert budget.remaining == 8.0 - math.fsum(EPSILONS)
        (said,) = budget.messages
        assert all(f"DPBoundsScaler {epsilon:g}" in said for epsilon in EPSILONS)


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_losses_of_all_fitted_parts_add_up(container):
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(int)
    steps = container([DPBoundsScaler(epsilon) for epsilon in EPSILONS])
    model = DPLogisticRegression(4.0, classes=[0, 1])
    flat = steps.steps if container is chain else [("all", steps)]
    for estimator in (make_pipeline(steps, model), Pipeline([*flat, ("model", model)])):
        loss = privacy_of(clone(estimator).fit(X, y))
        assert sorted(part.epsilon for part in loss.releases) == sorted([*EPSILONS, 4.0])
        assert loss.epsilon == math.fsum(EPSILONS) + 4.0


def test_the_losses_of_all_members_add_up():
    X = rows(60, 2)
    named = [(f"m{i}", DPRidge(epsilon, target_range=(-1, 1))) for i, epsilon in enumerate(EPSILONS)]
    together = VotingRegressor(named).fit(X, X[:, 0])
    assert [loss.epsilon for loss in privacy_of(together).releases] == EPSILONS
    several = MultiOutputRegressor(DPRidge(0.5, target_range=(-1, 1))).fit(X, np.tile(X[:, :1], 4))
    assert [loss.epsilon for loss in privacy_of(several).releases] == [0.5] * 4


@pytest.mark.parametrize("place", PLACES)
def test_the_delta_of_any_candidate_is_reserved(place, tmp_path):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=100.0, delta=0.1)
    X, grid = rows(60, 2), {"delta": one_at(place, 1e-6, lambda: 0.0)}
    StabilityGridSearchCV(
        DPRidge(norm="l2", target_range=(-1, 1)), grid, strategy="random", ledger=ledger
    ).fit(X, X[:, 0])
    (entry,) = ledger.history()
    assert entry.reserved_delta == 1e-6


@pytest.mark.parametrize("place", PLACES)
def test_private_steps_are_frozen_up_to_the_last_one(place):
    X = rows(40, 4)
    steps = chain(one_at(place, DPBoundsScaler(2.0), lambda: BoundedScaler((0, 1)))).steps
    steps.insert(0, ("nothing", "passthrough"))
    estimator = Pipeline([*steps, ("model", DPLogisticRegression(classes=[0, 1]))])
    assert last_private(estimator) == place + 1
    frozen, losses, names = freeze(estimator, X, None, key("freeze"), public_rows(X))
    assert names == [f"p{i}" for i in range(place + 1)]
    assert [loss.epsilon for loss in losses] == [2.0]
    assert frozen[place + 1].estimator.random_state is None and frozen[0] == "passthrough"


class Spy(TransformerMixin, BaseEstimator):
    """A step that learns nothing, and notes how many rows it was fitted on."""

    fitted_on: ClassVar[list] = []

    def fit(self, X, y=None):
        self.fitted_on.append(len(X))
        return self

    def transform(self, X):
        return np.asarray(X)

    def get_feature_names_out(self, names=None):
        return names

    def __sklearn_is_fitted__(self):
        return True


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("place", PLACES)
def test_what_stands_beside_a_private_part_sees_no_record(container, place):
    X = rows(40, 4)
    steps = container(one_at(place, DPBoundsScaler(2.0), Spy))
    Spy.fitted_on.clear()
    _, losses, _ = freeze(model_after(steps), X, None, key("freeze"), public_rows(X))
    assert [loss.epsilon for loss in losses] == [2.0]
    assert Spy.fitted_on and set(Spy.fitted_on) == {1}


def test_an_accuracy_first_search_counts_all_private_steps():
    steps = chain([DPBoundsScaler(epsilon) for epsilon in EPSILONS]).steps
    model = Pipeline([*steps, ("model", DPLogisticRegression(classes=[0, 1]))])
    with pytest.raises(ValueError, match="more than 3.75"):
        check_steps_afforded(model, 3.7)
    check_steps_afforded(model, 3.8)
    limit = Limit(tuple(steps_at_most(model)))
    method = SimpleNamespace(expected=lambda disjoint: 0.25)
    assert limit.expected(method) == math.fsum(EPSILONS) + 0.25


# ---- what a part of a table holds


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("place", PLACES)
def test_an_encoder_of_another_kind_is_refused_wherever_it_stands(container, place):
    width = 1 if container in (columns, with_remainder) else 4
    encoder = OneHotEncoder(categories=[["a", "b"]] * width)
    parts = one_at(place, encoder, BoundedScaler)
    if container is chain:
        # what a scaler makes is not followed
        parts = one_at(place, encoder, lambda: "passthrough")
    with pytest.raises(ValueError, match=f"'p{place}|'remainder"):
        check_kinds(container(parts), TableForm("array", ("numbers",) * 4))


@pytest.mark.parametrize("place", PLACES)
def test_an_imputer_of_numbers_is_refused_for_text_wherever_it_stands(place):
    schema = TableForm("array", tuple(one_at(place, "text", lambda: "numbers")))
    with pytest.raises(ValueError, match=f"column {place} of X holds text"):
        check_kinds(SimpleImputer(strategy="constant", fill_value=0), schema)


@pytest.mark.parametrize("place", PLACES)
def test_all_categories_tell_which_kinds_an_encoder_takes(place):
    encoder = OneHotEncoder(categories=[one_at(place, "a", lambda: 7)])
    for kind in ("numbers", "text"):
        check_kinds(encoder, TableForm("array", (kind,)))


@pytest.mark.parametrize("place", PLACES)
def test_encoders_of_lists_of_any_length_are_fitted_on_dummies(place):
    X = np.zeros((3, 4))
    encoder = OrdinalEncoder(categories=one_at(place, [0.0, 1.0, 3.0], lambda: [0.0]))
    fit(encoder, public_rows(X))
    assert (encoder.transform(X) == 0).all()


@pytest.mark.parametrize("n_columns", [1, 2, 3, 4])
@pytest.mark.parametrize("first", PLACES)
def test_every_column_of_a_selection_is_checked(first, n_columns):
    names = ["a", "b", "c", "d"]
    last = first + n_columns - 1
    if last > 3:
        return
    encoder = OneHotEncoder(categories=[[0, 1]] * n_columns)
    selections = [
        slice(names[first], names[last]),
        slice(first, last + 1),
        names[first : last + 1],
        list(range(first, last + 1)),
        [first <= i <= last for i in PLACES],
    ]
    if last == 3:
        selections.append(slice(names[first], None))
    for place, chosen in itertools.product(PLACES, selections):
        kinds = tuple(one_at(place, "text", lambda: "numbers"))
        schema = TableForm("pandas", kinds, names)
        step = ColumnTransformer([("part", encoder, chosen)])
        if first <= place <= last:
            with pytest.raises(ValueError, match=f"column {place} of X holds text"):
                check_kinds(step, schema)
        else:
            check_kinds(step, schema)


@pytest.mark.parametrize("container", [columns, with_remainder])
def test_names_of_integer_categories_are_integers_wherever_they_stand(container):
    steps = container(
        [
            OneHotEncoder(categories=[[0, 1]], sparse_output=False, handle_unknown="ignore")
            for _ in PLACES
        ]
    )
    fit(steps, public_rows(np.zeros((3, 4))))
    names = steps.get_feature_names_out().tolist()
    assert [name.rpartition("_")[2] for name in names] == ["0", "1"] * 4


@pytest.mark.parametrize("place", PLACES)
def test_histograms_are_counted_together_only_if_all_columns_allow_it(place):
    X = np.random.default_rng(0).uniform(-1, 1, size=(60, 4))
    parts = Parts.from_splits([(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(9))], X)
    trials = [
        Trial(DPHistogramDensity(bounds=(-1, 1), bin_width=widths), 50.0, key("cells", k))
        for k, widths in enumerate([[0.5] * 4, [1.0] * 4, one_at(place, 2 / 3, lambda: 1.0)])
    ]
    score = IntegratedSquaredErrorScore()
    together = density_split_scores(trials, score, X, None, parts)
    alone = [density_split_scores([trial], score, X, None, parts)[:, 0] for trial in trials]
    assert together == pytest.approx(np.transpose(alone))
    bounds = [(-1.0, 1.0)] * 4
    bounds[place] = (-0.5, 0.5)
    model = DPHistogramDensity(bounds=bounds, bin_width=0.5, epsilon=1e6).fit(X)
    outside = np.zeros((1, 4))
    outside[0, place] = 0.75
    assert model.score_samples(outside) == -np.inf
    # records outside of the bounds of any column count in its outermost cell
    masses = model.density_.reshape([4 if i != place else 2 for i in PLACES]) * 0.5**4
    axes = tuple(i for i in PLACES if i != place)
    expected = [np.mean(X[:, place] < 0), np.mean(X[:, place] >= 0)]
    assert masses.sum(axis=axes) == pytest.approx(expected, abs=1e-3)


# ---- what a composition states


WEAKER = {
    "a longer loss": PrivacyLoss(0.75, 0.0),
    "a delta": PrivacyLoss(0.5, 1e-6),
    "a seed": PrivacyLoss(0.5, seeded=True),
    "ex-post": PrivacyLoss(0.5, kind="ex-post"),
}


@pytest.mark.parametrize("compose", [PrivacyLoss.sequential, PrivacyLoss.parallel])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", WEAKER)
def test_a_composition_states_what_weakens_any_of_its_parts(what, place, compose):
    part = WEAKER[what]
    losses = one_at(place, part, lambda: PrivacyLoss(0.5))
    whole = compose(losses)
    together = math.fsum if compose == PrivacyLoss.sequential else max
    assert whole.epsilon == together(loss.epsilon for loss in losses)
    assert (whole.delta, whole.seeded, whole.kind) == (part.delta, part.seeded, part.kind)
    assert whole.releases == tuple(losses) and len(str(whole).splitlines()) == 6
    nested = PrivacyLoss.sequential([PrivacyLoss(0.125), whole, PrivacyLoss(0.125)])
    assert nested.releases[1:-1] == tuple(losses)
    if nested.kind == "differential privacy":
        amounts = [loss.epsilon for loss in losses] if together is math.fsum else [whole.epsilon]
        assert [loss.epsilon for loss in added_losses(nested)] == [0.125, *amounts, 0.125]
    assert (nested.delta, nested.seeded, nested.kind) == (part.delta, part.seeded, part.kind)
    plain = PrivacyLoss(0.5)
    better = [
        {name: getattr(plain, name)}
        for name in ("delta", "seeded", "kind")
        if getattr(plain, name) != getattr(whole, name)
    ]
    for promise in better or [{"epsilon": together([0.5] * 4)}]:
        with pytest.raises(ValueError, match="do not follow|promise more"):
            replace(whole, **promise)


def test_an_accountant_counts_the_deltas_of_all_losses():
    pytest.importorskip("dp_accounting")
    losses = [PrivacyLoss(epsilon, 2.0**-20) for epsilon in EPSILONS]
    with pytest.raises(ValueError, match="the sum of the losses' own deltas"):
        composed_epsilon(losses, delta=3.9 * 2.0**-20)
    more = composed_epsilon(losses, delta=5 * 2.0**-20)
    plain = [PrivacyLoss(epsilon) for epsilon in EPSILONS]
    assert more == composed_epsilon(plain, delta=2.0**-20)


@pytest.mark.parametrize("place", PLACES)
def test_parts_of_another_adjacency_do_not_compose(place):
    other = PrivacyLoss(0.5, adjacency="replace one holdout record")
    with pytest.raises(ValueError, match="do not compose"):
        PrivacyLoss.sequential(one_at(place, other, lambda: PrivacyLoss(0.5)))


# ---- ledgers within ledgers


def ledgers(folder):
    return [PrivacyLedger(folder / f"{i}.ledger", epsilon=100.0) for i in PLACES]


def test_the_innermost_of_several_open_ledgers_pays_at_every_depth(tmp_path):
    opened = ledgers(tmp_path)
    blocks = [ledger.__enter__() and ledger for ledger in opened]
    for inner in reversed(blocks):
        assert current_ledger() == inner
        DPBoundsScaler(2.0).fit(rows(20, 2))
        assert inner.spent()[0] == 2.0
        inner.__exit__(None, None, None)
    assert current_ledger() is None
    assert [ledger.spent()[0] for ledger in opened] == [2.0] * 4


@pytest.mark.parametrize("place", PLACES)
def test_a_ledger_that_ends_out_of_turn_leaves_the_others_open(place, tmp_path):
    # as that of a generator may
    opened = [ledger.__enter__() and ledger for ledger in ledgers(tmp_path)]
    opened.pop(place).__exit__(None, None, None)
    while opened:
        assert current_ledger() == opened[-1]
        opened.pop().__exit__(None, None, None)
    assert current_ledger() is None


@pytest.mark.parametrize("place", PLACES)
def test_all_entries_of_a_ledger_count_when_it_is_read_again(place, tmp_path):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=8.0, delta=1e-3)
    for i, epsilon in enumerate(EPSILONS):
        reservation = ledger.reserve(epsilon, 1e-5)
        if i != place:  # one is open
            reservation.commit(PrivacyLoss(epsilon, 1e-5))
    text = json.loads(ledger.to_json())
    assert [entry["reserved_epsilon"] for entry in text["entries"]] == EPSILONS
    again = PrivacyLedger.from_json(json.dumps(text), tmp_path / "again.ledger")
    assert again.spent() == ledger.spent() == (math.fsum(EPSILONS), 4e-5)
    assert again.history() == ledger.history()
    for name, change in (
        ("id", 0),
        ("id", 2**53),
        ("reserved_epsilon", 9.0),
        ("reserved_delta", 1.0),
        ("label", None),
        ("reserved_epsilon", "1"),
    ):
        spoilt = json.loads(json.dumps(text))
        entry = spoilt["entries"][place]
        entry[name] = change
        if entry["committed_at"] is not None and name.startswith("reserved"):
            entry[name.removeprefix("reserved_")] = change
        with pytest.raises(ValueError, match="is not what to_json"):
            PrivacyLedger.from_json(json.dumps(spoilt), tmp_path / "spoilt.ledger")
    twice = json.loads(json.dumps(text))
    twice["entries"][place]["id"] = twice["entries"][place - 1]["id"]
    with pytest.raises(ValueError, match="is not what to_json"):
        PrivacyLedger.from_json(json.dumps(twice), tmp_path / "spoilt.ledger")
    for budget in ({"epsilon": 3.7}, {"delta": 3.9e-5}, {"delta": 1.0}, {"epsilon": 0.0}):
        with pytest.raises(ValueError, match="is not what to_json"):
            PrivacyLedger.from_json(json.dumps({**text, **budget}), tmp_path / "spoilt.ledger")
