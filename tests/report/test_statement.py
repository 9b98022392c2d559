"""Every sentence of a privacy report is true, for each kind of release."""

import datetime
import json
import math
import pickle
import re
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

import dpselect
from dpselect import (
    AccuracyFirstSearchCV,
    AccuracyNotReachedError,
    Adjacency,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    Ladder,
    PrivacyLedger,
    PrivacyLoss,
    StabilityGridSearchCV,
    Thresholdout,
    ThresholdoutFeatureSelector,
    coef_interval,
    evaluate,
    privacy_of,
    privacy_report,
)
from dpselect.accounting.gaussian import gaussian_mu
from dpselect.preprocessing import DPBoundsScaler, tabular_pipeline
from dpselect.report import meaning, statement
from dpselect.report.document import Table, _broken
from dpselect.report.theorems import PAGES, PROOFS, proof_of

N, EVALUATED = 1500, 700
DOC = Path(dpselect.__file__).parents[1] / "doc" / "mechanisms"
DAY = datetime.date(2030, 1, 31)
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(N, 2))
Y = (X[:, 0] + 0.2 * RNG.normal(size=N) > 0).astype(int)
T = X[:, 0] - 0.5 * X[:, 1]
HELD_OUT = {"X_holdout": X[:400], "y_holdout": Y[:400]}
MODEL = DPLogisticRegression(classes=[0, 1], data_norm=0.7)
OF_TABLES = DPLogisticRegression(classes=[0, 1])
RIDGE = DPRidge(target_range=(-1, 1), alpha=0.01)
NORMS = {"data_norm": [0.25, 0.5]}
LEVELS = {"epsilon": np.geomspace(0.1, 100, 40)}
WIDE = RNG.uniform(-0.1, 0.1, size=(N, 40))
PERSONS = np.arange(N) // 3
TABLE = np.array([X[:, 0], np.where(X[:, 1] > 0, "yes", "no")], dtype=object).T
SCHEMA = {"dose": {"bounds": (-1, 1), "unit": "mg"}, "smokes": ["yes", "no"]}


def search(strategy, grid=NORMS, model=MODEL, **params):
    return StabilityGridSearchCV(model, grid, strategy=strategy, **params)


def first(method, target=0.05, **params):
    return AccuracyFirstSearchCV(RIDGE, LEVELS, target=target, method=method, **params)


def not_found(method):
    model = AccuracyFirstSearchCV(
        RIDGE, {"epsilon": [0.01, 0.02]}, target=0.01, method=method, random_state=0
    )
    with pytest.raises(AccuracyNotReachedError):
        model.fit(X, T)
    return model


RELEASES = {
    "classifier": lambda: clone(MODEL).fit(X, Y),
    "classifier, gaussian": lambda: DPLogisticRegression(classes=[0, 1], delta=1e-6, data_norm=2.0).fit(
        WIDE, Y
    ),
    "huber, gaussian": lambda: DPHuberRegressor(target_range=(-1, 1), delta=1e-6).fit(WIDE, T),
    "svc, gaussian output": lambda: DPLinearSVC(classes=[0, 1], perturbation="output", delta=1e-6).fit(
        WIDE, Y
    ),
    "persons": lambda: clone(MODEL).fit(X, Y, groups=PERSONS),
    "persons, output": lambda: DPPoissonRegressor(target_bound=3.0, perturbation="output").fit(
        X, Y, groups=PERSONS
    ),
    "persons, huber": lambda: DPHuberRegressor(target_range=(-1, 1)).fit(X, T, groups=PERSONS),
    "persons, learned first": lambda: DPLogisticRegression(classes=[0, 1], data_norm="auto").fit(
        X, Y, groups=PERSONS
    ),
    "persons, ridge": lambda: clone(RIDGE).fit(X, T, groups=PERSONS),
    "persons, density": lambda: DPHistogramDensity(bounds=[(-1, 1)] * 2, bin_width=0.5).fit(
        X, groups=PERSONS
    ),
    "persons, search": lambda: search("stability").fit(X, Y, groups=PERSONS),
    "persons, tests": lambda: first("reduced_above_threshold").fit(X, T, groups=PERSONS),
    "persons, evaluated": lambda: search("auto", evaluation=0.25).fit(X, Y, groups=PERSONS),
    "persons, evaluation": lambda: evaluate(PUBLIC, X, Y, epsilon=1.0, groups=PERSONS),
    "svc, output": lambda: DPLinearSVC(classes=[0, 1], perturbation="output").fit(X, Y),
    "learned first": lambda: DPLogisticRegression(classes=[0, 1], data_norm="auto").fit(X, Y),
    "labels learned": lambda: DPLogisticRegression(2.0).fit(X, Y),
    "huber": lambda: DPHuberRegressor(target_range=(-1, 1)).fit(X, T),
    "counts": lambda: DPPoissonRegressor(target_bound=3.0).fit(X, Y),
    "ridge, gaussian": lambda: clone(RIDGE).set_params(delta=1e-5).fit(X, T),
    "ridge, objective": lambda: DPRidge(target_range=(-1, 1), perturbation="objective").fit(X, T),
    "density": lambda: DPHistogramDensity(bounds=[(-1, 1)] * 2, bin_width=0.5).fit(X),
    "private step": lambda: DPBoundsScaler(0.25).fit(X),
    "pipeline": lambda: make_pipeline(DPBoundsScaler(0.25), clone(MODEL)).fit(X, Y),
    "table": lambda: tabular_pipeline(SCHEMA, OF_TABLES).fit(TABLE, Y),
    "search of a table": lambda: search(
        "auto",
        {"encoder__expansion": [2, 4]},
        tabular_pipeline(SCHEMA, OF_TABLES),
    ).fit(TABLE, Y),
    "search, public rule": lambda: search("auto", {"alpha": [0.1, 1.0]}).fit(X, Y),
    "search, stability": lambda: search("stability").fit(X, Y),
    "search, optimal risk": lambda: search("optimal_risk", epsilon=4.0).fit(X, Y),
    "search, runs": lambda: search("random_stopping", scoring="accuracy").fit(X, Y),
    "search, budget": lambda: search("budget_split", scoring="accuracy").fit(X, Y),
    "search, data": lambda: search("data_split", scoring="accuracy").fit(X, Y),
    "search, one release": lambda: search("auto", {"alpha": [0.1, 1.0]}, RIDGE).fit(X, T),
    "search, no privacy": lambda: search("auto", epsilon=float("inf")).fit(X, Y),
    "accuracy first, certified": lambda: first("certified").fit(X, T),
    "accuracy first, brownian": lambda: first("brownian", delta=1e-6).fit(X, T),
    "accuracy first, tests": lambda: first("reduced_above_threshold").fit(X, T),
    "accuracy first, verify": lambda: first("predict_verify").fit(X, T),
    "accuracy first, doubling": lambda: first("doubling").fit(X, T),
    "accuracy first, failed": lambda: not_found("doubling"),
    "accuracy first, nothing tried": lambda: not_found("certified"),
    "holdout": lambda: Thresholdout(budget=2).fit(X, Y, **HELD_OUT),
    "columns": lambda: ThresholdoutFeatureSelector(LogisticRegression(), n_features_to_select=1).fit(
        X, Y
    ),
    "ladder": lambda: Ladder(0.1).fit(X, Y),
    "evaluation": lambda: evaluate(PUBLIC, X[:EVALUATED], Y[:EVALUATED], epsilon=1.0),
    "evaluation of a density": lambda: evaluate(
        DPHistogramDensity(bounds=[(-1, 1)] * 2, bin_width=0.5).fit(X[EVALUATED:]),
        X[:EVALUATED],
        epsilon=1.0,
    ),
    "intervals": lambda: coef_interval(
        clone(MODEL).fit(X[EVALUATED:], Y[EVALUATED:]),
        X[:EVALUATED],
        Y[:EVALUATED],
        epsilon=100.0,
        n_samples=N - EVALUATED,
    ),
    "seeded": lambda: DPLogisticRegression(classes=[0, 1], random_state=0).fit(X, Y),
}
PUBLIC = LogisticRegression().fit(X[EVALUATED:], Y[EVALUATED:])


@pytest.fixture(scope="module")
def released():
    """Each release, made when a test first asks for it."""
    made = {}

    def make(name):
        if name not in made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made[name] = RELEASES[name]()
        return made[name]

    return make


@pytest.fixture(params=RELEASES)
def name(request):
    return request.param


@pytest.fixture
def model(name, released):
    return released(name)


def section(report, title):
    return next(s.blocks for s in report.sections if s.title.startswith(title))


def texts(report, title):
    """All sentences of a section, in one string."""
    found = [block for block in section(report, title) if not isinstance(block, Table)]
    return " ".join(" ".join(block) if isinstance(block, tuple) else block for block in found)


def tables(report, title):
    return [b for b in section(report, title) if isinstance(b, Table)]


def check_releases(report, loss):
    """What the first table says of single releases is what the loss is made of, each with a proof."""
    table, *_ = tables(report, "What was released")
    added = r"sum of \(on the same records\)$"
    larger = rf"(larger|largest) of \(no {loss.adjacency.unit} is in two of them\)$"
    rows = [row for row in table.rows if not re.search(f"{added}|{larger}", row[0])]
    assert [row[0].lstrip("\N{EN DASH} ") for row in rows] == [part.label for part in loss.releases]
    for row, part in zip(rows, loss.releases):
        assert float(row[1]) == pytest.approx(part.epsilon, rel=1e-5)
        assert ("delta" in table.head) == (loss.delta > 0)
        if loss.delta:
            assert float(row[2]) == pytest.approx(part.delta, rel=1e-5)
        has_proof = re.match("Theorem|Corollary|Section", row[-1]) or part.epsilon in (0.0, math.inf)
        assert has_proof, f"add a Proof of {part.label!r} to PROOFS in dpselect/report/theorems.py"


def check_meaning(report, loss, whole):
    said = texts(report, "What epsilon = ")
    if loss.epsilon == math.inf:
        assert said.startswith("Nothing is promised") and not tables(report, "What epsilon = ")
        return
    factor = float(re.search(r"factor of at most ([\d.,e+]*\d)", said)[1].replace(",", ""))
    assert factor == pytest.approx(math.exp(loss.epsilon), rel=1e-3)
    (table,) = tables(report, "What epsilon = ")
    for before, after in table.rows:
        prior, posterior = (float(cell.rstrip(" %")) / 100 for cell in (before, after))
        # by randomised response, which an epsilon allows: attained, and told up to a digit
        exact = prior * math.exp(loss.epsilon) / (1 - prior + prior * math.exp(loss.epsilon))
        assert exact - 1e-12 <= posterior <= exact + 0.0011
    if whole is not None:
        told = float(re.search(r"which one in at most ([\d.]+) %", said)[1]) / 100
        assert told_apart(whole.epsilon, whole.delta) - 1e-12 <= told
        assert told <= told_apart(whole.epsilon, whole.delta) + 0.0011
    else:
        assert "game" not in said


def told_apart(epsilon, delta):
    """The success of the best test of two mechanisms that are as far apart as the loss allows."""
    # with probability delta the outcome names the record, otherwise it is randomised response
    e = math.exp(-epsilon)
    here = np.array([delta, 0.0, (1 - delta) / (1 + e), (1 - delta) * e / (1 + e)])
    there = here[[1, 0, 3, 2]]
    return np.maximum(here, there).sum() / 2


def test_single_releases_are_those_of_the_loss(model):
    check_releases(privacy_report(model), privacy_of(model))


def test_lines_break_in_names_and_not_in_numbers():
    assert _broken("best_estimator_.model 0.25 [0.2, 0.3]") == (
        "best_<wbr>estimator_.<wbr>model 0.25 [0.2, 0.3]"
    )


def test_the_meaning_follows_from_the_loss(model):
    loss = privacy_of(model)
    whole = model.plan_.at_most if loss.kind == "ex-post" else loss
    check_meaning(privacy_report(model), loss, whole)


def test_sentences_for_each_property_of_a_loss(model):
    loss, report = privacy_of(model), privacy_report(model, date=DAY)
    meaning, released = texts(report, "What epsilon = "), texts(report, "What was released")
    private = loss.epsilon < math.inf
    assert report.privacy == loss
    assert (f"epsilon = {loss.epsilon:.6g}" in released) == private
    assert ("epsilon is infinite" in released) == (not private)
    assert ("not fixed in advance" in meaning) == (loss.kind == "ex-post")
    # two numbers are told apart
    assert ("is the one to quote" in meaning) == (loss.kind == "ex-post")
    assert ("an ex-post privacy loss" in released) == (loss.kind == "ex-post")
    assert ("delta" in meaning) == (private and (loss.delta > 0 or loss.kind == "ex-post"))
    assert ("shows the record openly" in meaning) == (loss.delta > 0 and loss.kind != "ex-post")
    assert ("the seed" in meaning) == loss.seeded
    assert ("the seed" in texts(report, "What is not covered")) == loss.seeded
    assert ("came from a seed" in texts(report, "How it was made")) == loss.seeded
    noisy = 0 < loss.epsilon < math.inf
    assert ("operating system" in texts(report, "How it was made")) == (noisy and not loss.seeded)
    assert (str(loss.adjacency) in texts(report, "Who is protected")) == private
    person = loss.adjacency == Adjacency.REPLACE_PERSON
    assert (" person " in meaning) == person and (" record " in meaning) == (private and not person)
    assert ("Nobody" in texts(report, "Who is protected")) == (not private)


def test_the_number_of_records(name, model):
    known = {"evaluation": EVALUATED, "holdout": None, "columns": None}
    known["evaluation of a density"] = EVALUATED
    if not name.startswith(("search", "ridge")):
        known.setdefault(name, None)
    if name.startswith("persons"):
        assert "The number of persons is public" in texts(privacy_report(model), "Who is protected")
    elif privacy_of(model).epsilon < math.inf:
        n = known.get(name, N)
        said = "is public." if n is None else f"is public: there are {n:,}."
        assert f"The number of records {said}" in texts(privacy_report(model), "Who is protected")


def test_persons_are_said_to_be_protected():
    rng = np.random.default_rng(0)
    X, whose = rng.uniform(-0.5, 0.5, size=(300, 2)), rng.integers(20, size=300)
    search = dpselect.StabilityGridSearchCV(
        dpselect.DPLogisticRegression(classes=[0, 1]), {"data_norm": [0.5, 1.0]}, epsilon=2.0
    ).fit(X, (X[:, 0] > 0).astype(int), groups=whose)
    report = privacy_report(search)
    said = texts(report, "Who is protected")
    assert "Protected is each person" in said and "replace all rows of one person" in said
    assert "The number of persons is public: there are 20." in said and "not a person" not in said
    meaning = texts(report, "What epsilon = ")
    assert "whatever one person says" in meaning and "record" not in meaning
    assert '"A person, not a row"' in str(report)
    # (title of a page that there is)
    assert PAGES["persons"] in (DOC / "persons.rst").read_text().splitlines()


def test_what_was_learned_or_declared_is_not_covered(released):
    labels, declared = "labels", "declared"
    assert labels in texts(privacy_report(released("labels learned")), "What is not covered")
    assert labels not in texts(privacy_report(released("classifier")), "What is not covered")
    with pytest.warns(dpselect.PrivacyLeakWarning):
        learned = search("auto", model=DPLogisticRegression()).fit(X, Y)
    assert labels in texts(privacy_report(learned), "What is not covered")
    trusting = search("auto", trusted_steps=["mine"], public_splits=True).fit(X, Y)
    said = texts(privacy_report(trusting), "What is not covered")
    assert said.count(declared) == 2 and "mine" in said
    assert declared not in texts(privacy_report(released("search, stability")), "What is not covered")


def test_weights_have_to_follow_from_their_own_record(released):
    raked = "as by raking"
    model = search("auto", model=DPLogisticRegression(classes=[0, 1], max_sample_weight=2.0)).fit(X, Y)
    evaluation = evaluate(model, X[:50] + 1, Y[:50], epsilon=1.0, sample_weight=Y[:50], max_weight=1.0)
    for found in (model, evaluation):
        assert raked in texts(privacy_report(found), "What is not covered")
    assert raked not in texts(privacy_report(released("classifier")), "What is not covered")


def test_what_is_public_is_what_was_given_and_not_what_was_chosen(released):
    model = released("search of a table")
    parameters, schema = tables(privacy_report(model), "What is taken to be public")
    told = {row[:2]: row[2] for row in parameters.rows}
    assert told["StabilityGridSearchCV", "param_grid"] == "encoder__expansion: 2, 4"
    assert told["estimator.model: DPLogisticRegression", "classes"] == "0, 1"
    assert not any(name == "expansion" for _, name in told)
    assert schema.rows == (("dose", "-1 to 1 mg"), ("smokes", "yes, no"))
    chosen = f"Chosen was encoder__expansion: {model.best_params_['encoder__expansion']}."
    assert f"{chosen} (expansion: into how many" in texts(privacy_report(model), "What was released")


@pytest.mark.parametrize(
    "y, confidence",
    [
        (Y, False),
        (np.arange(N) % 3, False),
        (np.arange(N) % 3, True),
        (T, False),
        (None, False),
    ],
)
def test_every_figure_is_explained(y, confidence):
    model = LinearRegression() if y is T else LogisticRegression()
    model = DPHistogramDensity(bounds=[(-1, 1)] * 2).fit(X) if y is None else model.fit(X, y)
    found = evaluate(
        model,
        X.copy(),
        y,
        epsilon=float("inf"),
        confidence=confidence,
        target_range=(-1.0, 1.0) if y is T else None,
    )
    (table,) = tables(privacy_report(found), "How good it is")
    assert all(row[2] for row in table.rows) and len(table.rows) == len(found.metrics)


# each answer counts against what is left, which a copy would not know
UNCOPIED = ("holdout", "ladder")


@pytest.mark.parametrize("name", [name for name in RELEASES if name not in UNCOPIED])
def test_no_record_is_read(name, released):
    """The report of a pickle, which has no records, is the same."""
    model = released(name)
    copy = pickle.loads(pickle.dumps(model))
    assert privacy_report(copy, date=DAY).to_json() == privacy_report(model, date=DAY).to_json()


@pytest.mark.parametrize("name", UNCOPIED)
def test_what_counts_its_answers_has_no_pickle(name, released):
    with pytest.raises(TypeError):
        pickle.dumps(released(name))


def test_evaluation_and_how_it_adds_up(released):
    evaluation, model = released("evaluation"), released("labels learned")
    report = privacy_report(model, evaluation=evaluation)
    (table,) = tables(report, "How good it is")
    assert {row[0]: row[1] for row in table.rows} == {
        name: str(evaluation.metric(name)) for name in evaluation.metrics
    }
    assert dict(row[::2] for row in table.rows)["lift"] == "precision, in multiples of positive_rate"
    said = texts(report, "How good it is")
    both = PrivacyLoss.parallel([model.privacy_, evaluation.privacy_])
    added = PrivacyLoss.sequential([model.privacy_, evaluation.privacy_])
    assert "64 noisy counts" in said and "Positive is 1." in said
    assert f"both together have epsilon = {both.epsilon:g}. " in said
    assert f"Otherwise they have {added.epsilon:g}, " in said
    alone = privacy_report(evaluation)
    assert "release of its own" not in texts(alone, "How good it is")
    assert not any(s.title == "How good it is" for s in privacy_report(model).sections)


def test_intervals_of_coefficients(released):
    intervals = released("intervals")
    report = privacy_report(intervals)
    (table,) = tables(report, "How well the coefficients are known")
    low, high = intervals.confidence_interval()
    assert [row[0] for row in table.rows] == ["0", "1", "intercept"]
    assert table.rows[0][1] == f"{intervals.coef[0]:.4g} [{low[0]:.4g}, {high[0]:.4g}]"
    assert "The model that the intervals are about" in texts(report, "What is not covered")
    lost = coef_interval(
        clone(MODEL).fit(X[EVALUATED:], Y[EVALUATED:]),
        X[:EVALUATED],
        Y[:EVALUATED],
        epsilon=0.2,
        n_samples=N - EVALUATED,
    )
    (table,) = tables(privacy_report(lost), "How well the coefficients are known")
    assert lost.empty and all("not known" in row[1] for row in table.rows)
    hint = "Least is known of", "How well the coefficients are known"
    assert hint[0] in texts(privacy_report(lost), hint[1]) and hint[0] not in texts(report, hint[1])


def test_the_state_of_a_ledger(tmp_path, released):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=3.0, delta=1e-3)
    model = released("classifier")
    ledger.spend(0.5, delta=1e-4, label="counts of wards")
    ledger.reserve(0.25)
    report = privacy_report(model, ledger)
    table, entries = tables(report, "Budget of the records")
    day = datetime.datetime.now(datetime.UTC).date()
    days = {(day - datetime.timedelta(days=k)).isoformat() for k in (0, 1)}
    assert [(row[0], *row[2:]) for row in entries.rows] == [
        ("counts of wards", "0.5", "0.0001"),
        (ledger.history()[1].label, "0.25", "0"),
    ]
    assert {row[1] for row in entries.rows} <= days
    assert [row[1:] for row in table.rows] == [("3", "0.001"), ("0.75", "0.0001"), ("2.25", "0.0009")]
    said = texts(report, "Budget of the records")
    assert "Entries: 2. Reserved, not committed and counted in full: 1." in said
    assert "'records.ledger'" in said and str(tmp_path) not in report.to_html()
    assert "another adjacency" not in said
    assert "another adjacency" in texts(privacy_report(released("holdout"), ledger), "Budget")
    assert "No ledger was given" in texts(privacy_report(model), "Budget of the records")


def test_versions_and_date(released):
    report = privacy_report(released("classifier"))
    assert report.date == datetime.date.today().isoformat()
    (table,) = tables(report, "How it was made")
    assert dict(table.rows)["scikit-learn"] == version("scikit-learn")


def test_theorems_stand_on_the_pages():
    for proof in PROOFS:
        page = (DOC / f"{proof.page}.rst").read_text()
        assert PAGES[proof.page] in page.splitlines()
        kind, _, rest = proof.where.partition(" ")
        stands = [rest] if kind == "Section" else re.findall(r"\d+a?", rest)
        assert stands
        for name in stands:
            assert (name if kind == "Section" else f"**Theorem {name}") in page, proof
    assert (
        statement.FREE_PROOF.startswith("Proposition 1")
        and "**Proposition 1.**" in (DOC / "selection_strategies.rst").read_text()
    )


@pytest.mark.parametrize("groups", [None, PERSONS])
@pytest.mark.parametrize(
    "model",
    [
        DPBoundsScaler(delta=1e-6),
        DPPoissonRegressor(1e3, target_bound=3.0, base_rate="auto"),
    ],
)
def test_what_is_learned_has_a_proof(model, groups):
    loss = clone(model).fit(np.tile(X, 4), Y, groups=groups).privacy_
    assert len(loss.releases) + (loss.delta > 0) == 2
    assert all(proof_of(part) for part in loss.releases)


def test_less_than_a_sum_has_a_proof():
    losses = [PrivacyLoss(0.5, label="DPRidge: a"), PrivacyLoss(0.5, 1e-6, label="DPRidge: b")]

    class Both:
        privacy_ = PrivacyLoss.joint(losses, 0.75)

    (table,) = tables(privacy_report(Both()), "What was released")
    assert table.rows[0][-1] == statement.JOINT_PROOF
    page = (DOC / "ledger.rst").read_text()
    for said in ("How losses add up", "**Proposition 3.**", "**Proposition 4 "):
        assert said in page


def test_another_authors_release_is_said_to_be_documented_elsewhere():
    class Other:
        privacy_ = PrivacyLoss(1.0, label="Other: something")

    (table,) = tables(privacy_report(Other()), "What was released")
    assert table.rows == (("Other: something", "1", "documentation of its class"),)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_gaussian_noise_tells_no_more_than_the_game_says(epsilon, delta=1e-3):
    # of deviation 1, where one record moves the mean by mu
    assert norm.cdf(gaussian_mu(epsilon, delta) / 2) <= meaning.success(epsilon, delta)


@pytest.mark.parametrize("name, broken", [
    ("posterior", lambda prior, epsilon: prior * math.exp(epsilon / 2)),
    ("success", lambda epsilon, delta: 1 / (1 + math.exp(-epsilon / 2))),
    ("success", lambda epsilon, delta: 1 / (1 + math.exp(-epsilon))),
    ("_factor", lambda epsilon: f"{math.exp(2 * epsilon):.4g}"),
    ("_percent", lambda share: f"{100 * share:.0f} %"),
])  # fmt: skip
def test_broken_twins_are_caught(name, broken, released, monkeypatch):
    monkeypatch.setattr(meaning, name, broken)

    class Release:
        privacy_ = PrivacyLoss(1.0, 0.01, label="DPRidge: sums by covariance perturbation")

    with pytest.raises(AssertionError):
        check_meaning(privacy_report(Release()), Release.privacy_, Release.privacy_)


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.3, 8.0, 30.0, 700.0, 1e5])
def test_shares_are_rounded_up(epsilon):
    told = float(meaning._percent(meaning.success(epsilon, 0.0)).rstrip(" %"))
    assert 100 * meaning.success(epsilon, 0.0) - 1e-9 <= told <= 100


@pytest.mark.parametrize("params", [
    {"ledger": "records.ledger"}, {"evaluation": 0.9}, {"date": "2030-01-31"}, {"about": 7},
])  # fmt: skip
def test_wrong_types_are_refused(params, released):
    (name,) = params
    with pytest.raises(TypeError, match=f"^{name} must be a .*; write .*"):
        privacy_report(released("classifier"), **params)


def test_the_records_have_a_name(released):
    model = released("classifier")
    report = privacy_report(model, about="Admissions of 2029, St. Anne's")
    assert report.sections[0].blocks[0] == "The records: Admissions of 2029, St. Anne's."
    assert "The records:" not in str(privacy_report(model))


def test_numbers_that_are_not_released_are_not_listed(released):
    said = str(privacy_report(released("search, stability")))
    assert "coef" in said and "n\\_iter" not in said and "multimetric" not in said


def test_what_released_nothing_is_refused():
    with pytest.raises((NotFittedError, ValueError)):
        privacy_report(DPLogisticRegression())
    with pytest.raises(ValueError, match="states no privacy loss|learns"):
        privacy_report(LogisticRegression().fit(X, Y))


def test_json_is_what_is_said(model):
    report = privacy_report(model)
    said = json.loads(report.to_json())
    assert [s["title"] for s in said["sections"]] == [s.title for s in report.sections]
    epsilon = said["privacy"]["epsilon"]
    assert (math.inf if epsilon == "inf" else epsilon) == privacy_of(model).epsilon


def test_a_search_that_evaluates_itself():
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(1000, 1))
    search = StabilityGridSearchCV(
        DPRidge(target_range=(-1, 1)), {"alpha": [0.1, 1.0]}, epsilon=5.0, evaluation=0.2
    ).fit(X, X[:, 0])
    said = privacy_report(search).to_markdown()
    # those that were set aside are records, too
    assert "there are 1,000" in said and "Measured on 200 records" in said
    assert "epsilon = 5 " in said and "both together" not in said
