import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from dpselect import (
    AccuracyFirstSearchCV,
    DPLogisticRegression,
    PrivacyLoss,
    SeededNoiseWarning,
    StabilityGridSearchCV,
)
from dpselect.accounting.events import ChoiceEvent
from dpselect.accounting.totals import composed_epsilon
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.preprocessing import DPBoundsScaler, check_pipeline_privacy
from dpselect.preprocessing.private_bounds import bound_grid, cell_utility, ranks_of
from dpselect.records.public_shape import PublicShape


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.column_stack(
        [
            rng.uniform(18, 90, 30_000),
            rng.lognormal(10, 1, 30_000),
            -rng.uniform(0, 1e-6, 30_000),
            np.full(30_000, 7.0),
        ]
    )


def seeded(X, seed=0, **parameters):
    with pytest.warns(SeededNoiseWarning):
        return DPBoundsScaler(random_state=seed, **parameters).fit(X)


def test_bounds_hold_about_the_target_share(X):
    scaler = DPBoundsScaler(epsilon=4.0, tail=0.05).fit(X)
    below, above = (X < scaler.bounds_[:, 0]).mean(axis=0), (X > scaler.bounds_[:, 1]).mean(axis=0)
    assert below.max() < 0.08 and above.max() < 0.08
    assert (scaler.bounds_[:, 0] < scaler.bounds_[:, 1]).all()
    Z = scaler.transform(X)
    assert np.abs(Z).max() <= 1 and Z[:, 0].std() > 0.3
    assert scaler.privacy_.epsilon == 4.0


def test_without_noise_they_are_the_quantiles(X):
    scaler = DPBoundsScaler(epsilon=float("inf"), tail=0.02).fit(X)
    exact = np.quantile(X, [0.02, 0.98], axis=0).T
    np.testing.assert_allclose(scaler.bounds_[:3], exact[:3], rtol=0.3, atol=1e-7)
    # a constant column has an interval around it
    assert scaler.bounds_[3, 0] < 7.0 <= scaler.bounds_[3, 1]


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 100.0, 1e4, np.inf])
@pytest.mark.parametrize("tail", [1e-3, 0.02, 0.499])
def test_bounds_are_never_crossed(epsilon, tail):
    """Not by noise, either, which chooses the two independently of each other."""
    X = np.random.default_rng(0).normal(size=(50, 60))
    scaler = seeded(X, epsilon=epsilon, tail=tail) if epsilon < np.inf else DPBoundsScaler(np.inf).fit(X)
    low, high = scaler.bounds_.T
    assert (low < high).all()
    np.testing.assert_array_equal(scaler.transform([low, high]), [[-1] * 60, [1] * 60])


def test_ranks():
    X = np.random.default_rng(0).normal(size=(500, 3)) * 10 ** np.array([-20.0, 0, 20.0])
    candidates = bound_grid()
    assert (np.diff(candidates) > 0).all()
    expected = (X[:, :, None] <= candidates).sum(axis=0)
    np.testing.assert_array_equal(ranks_of(X, candidates), expected)


def test_one_record_moves_every_utility_by_at_most_one():
    """Attack on the sensitivity: records at, between and beyond the candidates."""
    rng = np.random.default_rng(0)
    candidates = bound_grid()
    worst = 0
    for _ in range(200):
        n = int(rng.integers(1, 6))
        D = rng.choice(np.concatenate([candidates, [1e300, -1e300, 1e-300]]), size=(n, 2))
        E = D.copy()
        E[0] = rng.choice(candidates, size=2) * rng.choice([1.0, 1 + 1e-9])
        k = rng.uniform(0, n)
        one, other = (cell_utility(ranks_of(data, candidates), k) for data in (D, E))
        worst = max(worst, np.abs(one - other).max())
    assert 0.99 < worst <= 1.0 + 1e-12


def exact_law(column, epsilon, tail, candidates):
    ranks = ranks_of(column[:, None], candidates)[0]
    return softmax(epsilon / 4 * cell_utility(ranks, tail * len(column)))


@pytest.mark.slow
def test_law_is_the_exponential_mechanism():
    """The lower bound of one column, against exp(epsilon_q u / 2), epsilon_q = epsilon / 2."""
    column, grid = np.linspace(1, 2, 40), bound_grid()
    p = exact_law(column, 3.0, 0.4, grid)
    likely = p > 2e-3
    model = DPBoundsScaler(epsilon=3.0, tail=0.4, random_state=np.random.default_rng(0))
    noise = np.array([model.standard_noise(1)[0, 0] for _ in range(8_000)])
    utility = cell_utility(ranks_of(column[:, None], grid)[0], 16.0)
    chosen = np.argmax(utility + 4 / 3.0 * noise, axis=1)
    counts = np.bincount(chosen, minlength=len(p))
    observed = np.append(counts[likely], counts[~likely].sum())
    expected = np.append(p[likely], p[~likely].sum()) * len(chosen)
    assert likely.sum() > 3 and chisquare(observed, expected).pvalue > 1e-7
    # the check is not idle: a fifth more noise would be noticed
    p = exact_law(column, 3.0 / 1.2, 0.4, grid)
    expected = np.append(p[likely], p[~likely].sum()) * len(chosen)
    assert chisquare(observed, expected).pvalue < 1e-7


def test_data_far_from_zero_and_close_together():
    """Temperatures in kelvin: all of them lie between two values of the grid."""
    scaler = DPBoundsScaler(1.0).fit(np.random.default_rng(0).uniform(290, 300, size=(5000, 1)))
    np.testing.assert_array_equal(scaler.bounds_, [[288.0, 320.0]])


def worst_exact_loss(epsilon_claimed, epsilon_used):
    """Largest log-ratio of one bound's law between neighbours, over records and ranks."""
    candidates, worst = bound_grid(), 0.0
    for n, tail in ((1, 0.3), (2, 0.25), (10, 0.05), (10, 0.45)):
        D = np.full(n, 1.0)
        for x in (1e-30, 0.5, 1e30, -1e30):
            E = D.copy()
            E[0] = x
            p, q = (exact_law(data, epsilon_used, tail, candidates) for data in (D, E))
            worst = max(worst, np.abs(np.log(p / q)).max())
    return worst / (epsilon_claimed / 2)


def test_exact_loss_of_a_bound_and_its_broken_twin():
    assert 0.4 < worst_exact_loss(1.0, 1.0) <= 1.0
    assert worst_exact_loss(1.0, 2.5) > 1.0


# --- in a search


@pytest.fixture(scope="module")
def records(X):
    rng = np.random.default_rng(1)
    y = (X[:, 0] / 20 + np.log(X[:, 1]) - 12.7 + rng.logistic(size=len(X)) > 0).astype(int)
    return X[:, :2], y


def test_its_loss_is_a_share_and_its_bounds_are_released(records):
    pipeline = make_pipeline(DPBoundsScaler(epsilon=0.25), DPLogisticRegression(classes=[0, 1]))
    search = StabilityGridSearchCV(
        pipeline, {"dplogisticregression__alpha": [0.01, 0.02]}, epsilon=1.0
    ).fit(*records)
    assert search.privacy_.epsilon == 1.0
    assert [release.epsilon for release in search.privacy_.releases] == [0.25, 0.75]
    scaler = search.best_estimator_[0]
    assert isinstance(scaler, DPBoundsScaler) and scaler.random_state is None
    assert search.score(records[0].copy(), records[1]) > -0.24
    assert not hasattr(pipeline[0], "bounds_")


def test_it_is_fitted_once(records, monkeypatch):
    fits = []
    original = DPBoundsScaler.fit
    monkeypatch.setattr(
        DPBoundsScaler, "fit", lambda self, X, y=None: (fits.append(len(X)), original(self, X, y))[1]
    )
    pipeline = make_pipeline(
        ColumnTransformer([("n", DPBoundsScaler(0.5), [0, 1])]),
        PolynomialFeatures(2),
        DPLogisticRegression(classes=[0, 1]),
    )
    search = StabilityGridSearchCV(
        pipeline, {"polynomialfeatures__degree": [1, 2]}, epsilon=1.0, n_noise_samples=2
    ).fit(*records)
    assert [n for n in fits if n > 1] == [30_000]  # the others are dummy rows
    assert search.privacy_.epsilon == 1.0
    assert search.best_estimator_[0].named_transformers_["n"].bounds_.shape == (2, 2)


def test_two_private_parts_are_both_paid(records):
    pipeline = make_pipeline(
        ColumnTransformer([("a", DPBoundsScaler(0.5), [0]), ("b", DPBoundsScaler(0.25), [1])]),
        DPLogisticRegression(classes=[0, 1]),
    )
    search = StabilityGridSearchCV(
        pipeline, {"dplogisticregression__alpha": [0.1, 1.0]}, epsilon=1.0
    ).fit(*records)
    assert search.privacy_.epsilon == 1.0
    assert [release.epsilon for release in search.privacy_.releases] == [0.5, 0.25, 0.25]


ALPHAS = {"dplogisticregression__alpha": [0.1, 1.0]}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "search",
    [
        *(
            StabilityGridSearchCV(None, ALPHAS, strategy=strategy, epsilon=2.0)
            for strategy in STRATEGIES
        ),
        *(
            AccuracyFirstSearchCV(
                None,
                {"dplogisticregression__epsilon": [1.0, 10.0]},
                target=0.5,
                method=method,
                max_epsilon=np.inf,
                on_failure="last",
            )
            for method in ("certified", "doubling")
        ),
    ],
    ids=lambda search: getattr(search, "strategy", "accuracy first"),
)
def test_labels_that_are_learned_are_those_that_are_given(search):
    """Each of them is one problem more for the noise."""
    X = np.random.default_rng(0).normal(size=(1000, 3))
    y = np.argmax(np.c_[X, -X.sum(axis=1)], axis=1)
    learned, given = (
        clone(search)
        .set_params(
            random_state=0,
            estimator=make_pipeline(
                DPBoundsScaler(0.5), DPLogisticRegression(alpha=0.1, classes=classes)
            ),
        )
        .fit(X, y)
        for classes in (None, range(4))
    )
    for name, column in getattr(given, "cv_results_", {}).items():
        np.testing.assert_array_equal(learned.cv_results_[name], column)
    models = [s.best_estimator_[-1] for s in (learned, given)]
    assert [list(model.classes) for model in models] == [[0, 1, 2, 3]] * 2
    np.testing.assert_array_equal(*(model.coef_ for model in models))
    assert learned.privacy_ == given.privacy_


def test_a_seeded_search_repeats_its_bounds_and_marks_them(records):
    pipeline = make_pipeline(DPBoundsScaler(0.5), DPLogisticRegression(classes=[0, 1]))
    results = []
    for _ in range(2):
        search = StabilityGridSearchCV(
            pipeline, {"dplogisticregression__alpha": [0.1, 1.0]}, random_state=0
        )
        with pytest.warns(SeededNoiseWarning):
            results.append(search.fit(*records))
    assert (results[0].best_estimator_[0].bounds_ == results[1].best_estimator_[0].bounds_).all()
    assert all(release.seeded for release in results[0].privacy_.releases)


def test_a_grid_may_not_vary_it(records):
    pipeline = make_pipeline(DPBoundsScaler(0.5), DPLogisticRegression(classes=[0, 1]))
    for grid in ({"dpboundsscaler__tail": [0.01, 0.02]}, {"dpboundsscaler": ["passthrough"]}):
        with pytest.raises(ValueError, match="dpboundsscaler.*release of its own"):
            StabilityGridSearchCV(pipeline, grid).fit(*records)


def test_the_check_lets_it_pass():
    check_pipeline_privacy(make_pipeline(DPBoundsScaler(), DPLogisticRegression()))


def test_plan_needs_no_bounds():
    pipeline = make_pipeline(DPBoundsScaler(0.5), DPLogisticRegression())
    search = StabilityGridSearchCV(pipeline, {"dplogisticregression__alpha": [0.1, 1.0]})
    assert search.plan(10_000, 3).strategy == "data_independent"


@pytest.mark.parametrize("epsilon, delta, p", [(1.0, 1e-6, 10), (0.1, 1e-9, 40), (3.0, 1e-4, 4)])
def test_with_a_delta_all_choices_together_cost_what_is_stated(epsilon, delta, p):
    shape = PublicShape(1000, p)
    calibration, pure = (DPBoundsScaler(epsilon, delta=d).calibration(shape) for d in (delta, 0.0))
    assert calibration.delta == delta and calibration.scale < 0.95 * pure.scale
    event = calibration.event()
    # a cell that misses by a record more is exp(epsilon / 2) times less likely
    assert event.times == 2 * p and 2 / calibration.scale <= event.epsilon

    def together(event):
        loss = PrivacyLoss(100.0, event=event)
        return composed_epsilon([loss], delta, accountant="concentrated")

    assert 0.999 * epsilon < together(event) <= epsilon
    # twins: one choice a column, divergences of half, a grid for nothing
    for twin in (ChoiceEvent(event.epsilon * 2**0.5, 2 * p), ChoiceEvent(event.epsilon, 4 * p)):
        assert together(twin) > 1.2 * epsilon
    # an independent look: privacy loss distributions say less, but nearly as much
    found = composed_epsilon([PrivacyLoss(100.0, event=event)], delta)
    assert 0.7 * epsilon < found <= epsilon


def test_a_delta_that_does_not_help_is_not_spent(records):
    X, _ = records
    shape = PublicShape(len(X), 1)
    one, pure = DPBoundsScaler(1.0, delta=1e-6), DPBoundsScaler(1.0)
    assert one.calibration(shape).scale == pure.calibration(shape).scale
    assert one.fit(X[:, :1]).privacy_.delta == 0
    wide = np.tile(X[:, :1], 8)
    assert one.fit(wide).privacy_.delta == 1e-6
