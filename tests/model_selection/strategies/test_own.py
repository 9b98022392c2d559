"""A strategy of a user: in one file, at most 25 lines of code, and the ledger counts it."""

import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import dpselect
from dpselect import BudgetExceededError, CertificateError, PrivacyLedger, PrivacyLoss
from dpselect.accounting.events import ChoiceEvent
from dpselect.base.estimator import Trial
from dpselect.mechanisms import noisy_argmax
from dpselect.model_selection import Choice, Strategy, stages
from dpselect.model_selection.splits import disjoint_parts
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.rows import take_records

from .common import (
    GRID,
    LOGISTIC,
    RIDGE,
    Untouchable,
    coefficients,
    records,
    search,
    seeded,
    targets,
)


class HalfOnHeldOutRecords(Strategy):
    """Candidates trained on records of their own are compared, with noise, on others."""

    def prepare(self):
        self.selection_epsilon = self.problem.selection_epsilon(0.5)
        self.training_epsilon = self.problem.epsilon - self.selection_epsilon
        self.train, self.test = disjoint_parts(self.problem.splits)

    def choose(self, X, y, stream):
        candidates, scores = self.problem.candidates, []
        parts = np.array_split(self.train, len(candidates))
        for i, (candidate, part) in enumerate(zip(candidates, parts)):
            noise, rows = stream.child("model", i).for_release(), candidate.transform(X)
            trial = Trial(candidate.model, self.selection_epsilon, noise)
            model = trial.fitted(*take_records(rows, y, part))
            scores.append(self.problem.score(model, *take_records(rows, y, self.test)))
        best = noisy_argmax(
            scores,
            np.full(len(scores), self.problem.score.width / len(self.test)),
            self.selection_epsilon,
            stream.child("choice").for_release(),
        )
        return Choice(best, [self.choice_loss(self.selection_epsilon)])


class MostRegularised(Strategy):
    """A public number decides, and costs nothing."""

    compares_scores = False

    def choose(self, X, y, stream):
        return Choice(int(np.argmax([c.params["alpha"] for c in self.problem.candidates])))


class Overspends(HalfOnHeldOutRecords):
    """Trains the model with the whole epsilon after it has paid for the choice."""

    def prepare(self):
        super().prepare()
        self.training_epsilon = self.problem.epsilon


class Understates(HalfOnHeldOutRecords):
    def at_most(self):
        return [PrivacyLoss(self.training_epsilon)]


class DeltaOfNothing(MostRegularised):
    """Its choice has a delta that was not reserved."""

    def choose(self, X, y, stream):
        return Choice(0, [self.choice_loss(0.0, delta=1e-6)])


OWN = [HalfOnHeldOutRecords, MostRegularised]


@pytest.fixture(scope="module")
def data():
    return records()


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "own.ledger", epsilon=2.0, delta=1e-5)


def test_it_is_short_and_nothing_else_knows_it():
    assert len(inspect.getsource(HalfOnHeldOutRecords).splitlines()) <= 25
    library = "".join(path.read_text() for path in Path(dpselect.__file__).parent.rglob("*.py"))
    assert not any(kind.__name__ in library for kind in OWN)


@pytest.mark.parametrize("kind", OWN)
def test_the_ledger_counts_what_it_spends(kind, data, ledger):
    s = search(kind, ledger=ledger).fit(*data)
    (entry,) = ledger.history()
    assert (s.privacy_.epsilon, s.privacy_.delta) == (entry.epsilon, entry.delta) == (1.0, 0.0)
    assert [loss.epsilon for loss in s.privacy_.releases] == {
        HalfOnHeldOutRecords: [0.5, 0.5],
        MostRegularised: [1.0],
    }[kind]
    s.fit(*data)
    with pytest.raises(BudgetExceededError):
        s.fit(Untouchable(), Untouchable())
    assert ledger.remaining()[0] == 0.0


@pytest.mark.parametrize("kind", OWN)
def test_without_refit_its_choice_alone_is_paid(kind, data, ledger):
    s = search(kind, ledger=ledger, refit=False).fit(*data)
    assert ledger.spent() == (s.privacy_.epsilon, 0.0)
    assert s.privacy_.epsilon == s.plan_.selection_epsilon
    assert not hasattr(s, "best_estimator_")


@pytest.mark.parametrize("model", [None, RIDGE], ids=["logistic", "ridge"])
@pytest.mark.parametrize("kind", OWN)
def test_it_does_what_a_named_one_does(kind, model, data):
    X, y = data if model is None else (data[0], targets(data[0]))
    s = search(kind, *([] if model is None else [model]))
    plan = s.plan(*X.shape)
    assert plan.strategy == kind.__name__
    assert [row.strategy for row in plan.comparison] == [*list(STRATEGIES)[1:], kind.__name__]
    first, again = (seeded(s).fit(X, y) for _ in range(2))
    assert first.privacy_.seeded and (coefficients(first) == coefficients(again)).all()
    assert first.plan_.training_epsilon == plan.training_epsilon
    copy = pickle.loads(pickle.dumps(first))
    assert clone(copy).strategy is kind and copy.best_params_ == first.best_params_


def test_it_finds_the_best_with_much_to_spend(data):
    s = search(HalfOnHeldOutRecords, grid={"alpha": [1000.0, 0.01]}, epsilon=1e5).fit(*data)
    assert s.best_index_ == 1
    assert search(MostRegularised).fit(*data).best_params_ == {"alpha": max(GRID["alpha"])}


@pytest.mark.parametrize(
    "kind, refit",
    [(Overspends, True), (Understates, True), (DeltaOfNothing, True), (DeltaOfNothing, False)],
)
def test_what_spends_more_than_it_stated_releases_nothing(kind, refit, data, ledger):
    s = search(kind, ledger=ledger, refit=refit)
    with pytest.raises(CertificateError, match=f"{kind.__name__}.*at_most") as told:
        s.fit(*data)
    (entry,) = ledger.history()
    assert (entry.epsilon, entry.kind) == (entry.reserved_epsilon, "uncommitted")
    assert ledger.spent()[0] == entry.reserved_epsilon > 0
    assert [name for name in vars(s) if name.endswith("_")] == []
    assert str(told.value).count(". ") == 0
    # a search without a ledger refuses all the same
    with pytest.raises(CertificateError, match="at_most"):
        search(kind, refit=refit).fit(*data)


@pytest.mark.parametrize(
    "strategy",
    [
        Strategy,
        HalfOnHeldOutRecords(
            type(
                "Problem",
                (),
                {
                    "epsilon": 1.0,
                    "n_samples": 4,
                    "splits": [([0], [1])],
                    "selection_epsilon": lambda self, share: share,
                },
            )()
        ),
        Choice,
        "HalfOnHeldOutRecords",
    ],
    ids=["abstract", "an object", "another class", "a name"],
)
def test_what_is_no_strategy_is_refused(strategy):
    with pytest.raises(ValueError, match="strategy.*dpselect.model_selection.Strategy"):
        search(strategy).fit(Untouchable(), Untouchable())


def persons_in_parts(strategy, groups):
    """Return the persons of the rows that each model of a choice was trained on."""
    X, y = records(len(groups))
    seen = []

    class Recording(strategy):
        takes_groups = True

        def choose(self, X, y, stream):
            seen.append((self.problem.n_samples, len(X)))
            return super().choose(X, y, stream)

    search(strategy=Recording).fit(X, y, groups=groups)
    return seen


@pytest.mark.parametrize("method", ["fit", "plan"])
def test_a_strategy_that_cuts_rows_is_refused_rows_of_persons(method):
    """It would take numbers of persons for numbers of rows, of which one person has many."""
    groups = np.repeat(np.arange(60), 10)
    assert persons_in_parts(HalfOnHeldOutRecords, groups) == [(60, 600)]
    own = search(strategy=HalfOnHeldOutRecords)
    with pytest.raises(TypeError, match="takes_groups = True"):
        if method == "plan":
            own.plan(60, 3, persons=True)
        else:
            own.fit(*records(600), groups=groups)
    assert all(kind.takes_groups for kind in STRATEGIES.values())


class Spending(MostRegularised):
    """Spends a delta on its choice."""

    def choose(self, X, y, stream):
        return Choice(0, [self.choice_loss(0.0, self.problem.delta)])


class SpendingUnasked(Spending):
    takes_delta = False


@pytest.mark.parametrize("name", ["auto", "data_independent", "optimal_risk", "random"])
def test_the_delta_of_the_search_is_reserved_where_a_strategy_may_spend_it(name):
    model = clone(LOGISTIC).set_params(delta=1e-7)
    one, grid = {"alpha": [0.1]}, {"alpha": [0.1, 1.0]}
    for candidates in (one, grid):
        planned = search(name, model, candidates, delta=1e-6).plan(400, 3).delta
        # with several, "auto" might take another strategy for other numbers of records
        spent = 1e-6 if name == "auto" and candidates is grid else 0.0
        assert planned == pytest.approx(1e-7 + spent)
    assert search(strategy=Spending, delta=1e-6).plan(400, 3).delta == 1e-6
    assert search(strategy=Spending, delta=1e-6).fit(*records(400)).privacy_.delta == 1e-6
    with pytest.raises(CertificateError, match="have spent more"):
        search(strategy=SpendingUnasked, delta=1e-6).fit(*records(400))


class ByTheNorm(HalfOnHeldOutRecords):
    """Spends the less on a choice the longer the rows are."""

    def prepare(self):
        super().prepare()
        norm = self.problem.candidates[0].model.data_norm
        self.selection_epsilon = 0.5 * self.problem.epsilon / (1 + norm)
        self.training_epsilon = self.problem.epsilon - self.selection_epsilon


def test_a_strategy_that_divides_epsilon_by_what_was_learned_is_refused():
    learning = clone(LOGISTIC).set_params(data_norm="auto")
    for kind in (HalfOnHeldOutRecords, MostRegularised):
        search(kind, learning).fit(*records())
    with pytest.raises(CertificateError, match="public numbers"):
        search(ByTheNorm, learning).fit(*records())


class TrainsTheWinner(HalfOnHeldOutRecords):
    """Trains the model that it has chosen, and states both in one loss."""

    def choose(self, X, y, stream):
        choice = super().choose(X, y, stream)
        winner = self.problem.candidates[choice.best]
        model = clone(winner.model).set_params(epsilon=self.training_epsilon)
        model.fit(winner.transform(X), y)
        assert model.privacy_.event is not None
        loss = PrivacyLoss.sequential([*choice.losses, model.privacy_], label="choice and model")
        return Choice(choice.best, [loss], winner.with_steps(model))


def parts_of(loss):
    return [loss, *(inner for part in loss.parts for inner in parts_of(part))]


def check_no_event_of_a_model():
    model = clone(LOGISTIC).set_params(delta=1e-6)
    # so many columns that Gaussian noise is the shorter one
    X = np.random.default_rng(0).uniform(-0.1, 0.1, (3000, 60))
    fitted = search(TrainsTheWinner, model, GRID, epsilon=2.0).fit(X, (X[:, 0] > 0).astype(int))
    parts = parts_of(fitted.privacy_)
    assert len(parts) > 2
    assert all(loss.event is None or isinstance(loss.event, ChoiceEvent) for loss in parts)


def test_which_mechanism_a_chosen_model_has_is_not_stated(monkeypatch):
    """The records may have decided it, however deep in the statement it stands."""
    check_no_event_of_a_model()
    monkeypatch.setattr(stages, "without_events_of_models", lambda loss: loss)
    with pytest.raises(AssertionError):
        check_no_event_of_a_model()
