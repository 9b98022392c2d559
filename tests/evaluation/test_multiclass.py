"""Several classes: cells for every record, figures that are scikit-learn's, intervals that cover."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from dpselect import evaluate
from dpselect.accounting.privacy_loss import PrivacyLoss
from dpselect.evaluation.evaluation import noise_variance
from dpselect.evaluation.intervals import NoisyCounts
from dpselect.evaluation.multiclass import EDGES, MulticlassCells, MulticlassEvaluation
from dpselect.noise import as_generator, discrete_laplace
from dpselect.noise.grid import noise_ratio

INF = float("inf")
NAMES = np.array(["a", "b", "c"])
X, Y = make_classification(
    6000, 8, n_informative=4, n_classes=3, n_clusters_per_class=1, class_sep=0.8, random_state=0
)
Y = NAMES[Y]
MODEL = LogisticRegression().fit(X[:1000], Y[:1000])
TEST = X[1000:], Y[1000:]


@pytest.mark.parametrize("model", [MODEL, LinearSVC().fit(X[:1000], Y[:1000])], ids=["proba", "svc"])
def test_exact_figures_are_scikit_learns(model):
    evaluation = evaluate(model, *TEST, epsilon=INF)
    predicted = model.predict(TEST[0])
    assert evaluation.counts_.shape == ((54,) if model is MODEL else (9,))
    assert evaluation.metric("accuracy").value == pytest.approx(np.mean(predicted == TEST[1]), abs=1e-12)
    exact = metrics.balanced_accuracy_score(TEST[1], predicted)
    assert evaluation.metric("balanced_accuracy").value == pytest.approx(exact, abs=1e-12)
    found = [[cell.value for cell in row] for row in evaluation.confusion_matrix()]
    np.testing.assert_allclose(found, metrics.confusion_matrix(TEST[1], predicted))
    table = metrics.precision_recall_fscore_support(TEST[1], predicted)
    for name, column in zip(("precision", "recall", "f1", "share"), table):
        column = column / len(predicted) if name == "share" else column
        found = [evaluation.class_metric(name, label).value for label in NAMES]
        np.testing.assert_allclose(found, column, atol=1e-12)
        np.testing.assert_array_equal(evaluation.class_frame().xs(name, level="metric")["value"], found)
    if model is MODEL:
        exact = metrics.log_loss(TEST[1], model.predict_proba(TEST[0]))
        assert evaluation.metric("log_loss").value == pytest.approx(exact, rel=0.025)
    else:
        assert "log_loss" not in evaluation.metrics and "log_loss" not in repr(evaluation)


@pytest.mark.parametrize("K, calibrated", [(3, True), (4, False), (10, True), (101, True)])
def test_every_prediction_and_label_has_a_cell_of_its_own(K, calibrated):
    cells = MulticlassCells(np.arange(K), calibrated)
    label, prediction, low, high = cells.table
    assert cells.shape == (len(label),)
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.full(K, 0.3), size=5000), rng.integers(K, size=5000)
    found = cells.index(p if calibrated else p.argmax(axis=1), y)
    np.testing.assert_array_equal(label[found], y)
    np.testing.assert_array_equal(prediction[found], p.argmax(axis=1))
    if calibrated:
        at = p[np.arange(5000), y]
        assert ((low[found] <= at) & (at <= high[found])).all() and (np.isin(low, EDGES)).all()


def test_odd_predictions_have_a_cell():
    cells = MulticlassCells(np.arange(3), True)
    odd = np.array([[np.nan] * 3, [np.inf, 0, 0], [-1.0, -2, -3], [9.0, 8, 7], [0, 0, 0], [0.2] * 3])
    for label in range(3):
        found = cells.index(odd, np.full(6, label))
        assert (cells.table[0][found] == label).all() and (found < 54).all()
    strange = MulticlassCells(NAMES, False).index(np.array(["a", "zz", "0"]), NAMES)
    assert (strange >= 0).all() and (strange < 9).all()


def test_classes_in_another_order():
    class Turned(ClassifierMixin, BaseEstimator):
        classes_ = NAMES[::-1]

        def __sklearn_is_fitted__(self):
            return True

        def fit(self, X, y):
            """Do nothing."""

        def predict_proba(self, X):
            return MODEL.predict_proba(X)[:, ::-1]

    one, other = (evaluate(model, *TEST, epsilon=INF) for model in (MODEL, Turned()))
    assert one.class_metric("recall", "a") == other.class_metric("recall", "a")


P = np.array([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]])  # of predictions, by label


def law():
    """Probabilities of cells: rare labels, and records spread evenly over bins."""
    label, prediction, low, high = MulticlassCells(np.arange(3), True).table
    weights = np.array([0.75, 0.2, 0.05])[label] * P[label, prediction] * (high - low)
    of_pair = np.zeros((3, 3))
    np.add.at(of_pair, (label, prediction), high - low)
    return weights / of_pair[label, prediction]


def drawn(m, epsilon, cells, scale=1.0, repetitions=1000):
    generator = as_generator(0)
    counts = generator.multinomial(m, cells, size=repetitions)
    noise = scale * discrete_laplace(generator, counts.shape, noise_ratio(epsilon, 2))
    return NoisyCounts.of(counts + noise, m, noise_variance(epsilon))


def of_counts(counts):
    evaluation = MulticlassEvaluation(
        counts_=np.zeros(54),
        n_records=1,
        privacy_=PrivacyLoss(1.0, label=""),
        classes=np.arange(3),
        calibrated_scores=True,
    )
    return {name: metric(counts) for name, metric in evaluation._readers.items()}


def coverage(m, epsilon, scale=1.0):
    truth = of_counts(NoisyCounts.of(law()[None] * 1e12, 1e12, 0.0))
    for name, (value, low, high) in of_counts(drawn(m, epsilon, law(), scale)).items():
        told = ~np.isnan(value)
        exact = truth[name][0][0]
        yield name, told.mean(), ((low <= exact) & (exact <= high))[told].mean()


@pytest.mark.parametrize("m, epsilon", [(1000, 1.0), (5000, 0.3), (20_000, 3.0)])
def test_intervals_cover(m, epsilon):
    found = list(coverage(m, epsilon))
    assert all(covered > 0.91 for _, told, covered in found if told > 0.5)
    assert sum(told > 0.5 for _, told, _ in found) >= 2


def test_noise_that_is_longer_than_stated_is_caught():
    found = [covered for _, told, covered in coverage(5000, 0.3, 2.0) if told > 0.5]
    assert found and max(found) < 0.91


@pytest.mark.parametrize(
    "call",
    [
        lambda e: e.metric("recall"),
        lambda e: e.class_metric("accuracy", "a"),
        lambda e: e.class_metric("recall", "d"),
        lambda e: e.class_metric("recall", ["a"]),
        lambda e: e.class_metric("recall", ({},)),
        lambda e: e.class_metric("recall", None),
    ],
)
def test_bad_questions(call):
    with pytest.raises(ValueError, match="name|label"):
        call(evaluate(MODEL, *TEST, epsilon=1.0))
