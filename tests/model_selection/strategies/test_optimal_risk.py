import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import Pipeline, make_pipeline

from dpselect import CertificateError, DPHistogramDensity, DPLinearSVC, DPLogisticRegression
from dpselect.base.certificates import public_reach
from dpselect.model_selection.strategies import optimal_risk as module
from tests.trials import trial

from .common import GRID, LOGISTIC, Untouchable, records, search

MANY = 20_000


@pytest.fixture(scope="module")
def data():
    return records(MANY)


@pytest.fixture
def selections(monkeypatch):
    """(values, bounds, epsilon) of every selection."""
    made, original = [], module.select_by_risk_bound

    def spy(values, bounds, epsilon, random_state):
        made.append((values, bounds, epsilon))
        return original(values, bounds, epsilon, random_state)

    monkeypatch.setattr(module, "select_by_risk_bound", spy)
    return made


def test_few_records_train_the_first_candidate_with_everything(data, selections):
    X, y = data[0][:500], data[1][:500]
    assert public_reach(500, 3, 0.1) is None
    s = search("optimal_risk", grid={"alpha": [1.0, 0.01, 0.1]}).fit(X, y)
    assert s.best_params_ == {"alpha": 1.0} and not selections
    assert [loss.epsilon for loss in s.privacy_.releases] == [1.0]
    assert s.best_estimator_.epsilon == 1.0
    assert "first candidate is trained with the whole epsilon" in s.plan_.messages[0]
    assert search("optimal_risk", refit=False).fit(X, y).privacy_.epsilon == 0.0


def test_a_single_candidate_is_not_compared(data, selections):
    s = search("optimal_risk", grid={"alpha": [0.1]}).fit(*data)
    assert s.best_estimator_.epsilon == 1.0 and not selections


def test_bounds_are_for_the_models_that_will_be_trained(data, selections):
    s = search("optimal_risk").fit(*data)
    ((values, bounds, epsilon),) = selections
    assert epsilon == pytest.approx(0.1, rel=1e-12)
    reach = public_reach(MANY, 3, 0.1)
    for alpha, value, bound in zip(GRID["alpha"], values, bounds):
        model = DPLogisticRegression(epsilon=0.9, alpha=alpha, classes=[0, 1])
        assert bound == model.risk_bound(MANY, 3, 1, reach)
        np.testing.assert_allclose(
            value, model.optimal_values([trial(model)], *data, reach)[0], atol=2 * bound.inexactness
        )
    np.testing.assert_array_equal(s.cv_results_["sensitivity"], [bound.sensitivity for bound in bounds])


def test_candidates_that_see_other_columns_have_their_own_values(data, selections):
    """gamma and alpha vary together, so that groups are not consecutive."""
    pipeline = make_pipeline(RBFSampler(n_components=5), clone(LOGISTIC))
    grid = {"dplogisticregression__alpha": [0.001, 0.1], "rbfsampler__gamma": [0.5, 5.0]}
    s = search("optimal_risk", pipeline, grid).fit(*data)
    ((values, bounds, _),) = selections
    seed = s.best_estimator_[0].random_state
    for params, value, bound in zip(s.cv_results_["params"], values, bounds):
        model = DPLogisticRegression(
            epsilon=0.9, alpha=params["dplogisticregression__alpha"], classes=[0, 1]
        )
        gamma = params["rbfsampler__gamma"]
        rows = RBFSampler(gamma=gamma, n_components=5, random_state=seed).fit_transform(data[0])
        reach = public_reach(MANY, 4, 0.1)
        np.testing.assert_allclose(
            value,
            model.optimal_values([trial(model)], rows, data[1], reach)[0],
            atol=2 * bound.inexactness,
        )
    assert len(set(np.round(values, 4))) == 4


def test_different_losses_are_refused_before_the_data():
    pipeline = Pipeline([("m", clone(LOGISTIC))])
    for grid, match in (
        ({"m": [clone(LOGISTIC), DPLinearSVC(classes=[0, 1])]}, "CappedLogistic.*HuberHinge"),
        ({"m__max_derivative": [None, "auto"]}, "CappedLogisticLoss.* LogisticLoss"),
        ({"m__classes": [[0, 1], [0, 1, 2]]}, "of 1 problems.*of 3 problems"),
    ):
        # whatever the epsilon of the model: losses are those of the search
        for epsilon in (1.0, np.inf):
            model = clone(pipeline).set_params(m__epsilon=epsilon)
            with pytest.raises(CertificateError, match=f"{match}.*stability"):
                search("optimal_risk", model, grid).fit(Untouchable(), Untouchable())


def test_models_without_a_bound_are_refused_before_the_data():
    density = DPHistogramDensity(bounds=(-1, 1))
    with pytest.raises(CertificateError, match="risk_bound.*DPHistogramDensity.*'stability'"):
        search("optimal_risk", density, {"bin_width": [0.5, 1.0]}).fit(Untouchable())
