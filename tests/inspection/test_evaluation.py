"""Pictures of evaluations show released figures and nothing else."""

import matplotlib
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

from dpselect import (
    EvaluationCalibrationDisplay,
    EvaluationConfusionDisplay,
    EvaluationRocDisplay,
    evaluate,
)

matplotlib.use("Agg")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(6000, 2))
Z = X[:, 0] + RNG.normal(size=6000)
Y, BY = np.where(Z > 0, "ill", "fit"), np.where(X[:, 1] > 0, "a", "b")
K = np.digitize(Z, [-1, 1])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    matplotlib.pyplot.close("all")


def of(y, model=None, epsilon=1.0, **given):
    model = (LogisticRegression() if model is None else model).fit(X[:1000], y[:1000])
    return evaluate(model, X[1000:], y[1000:], epsilon=epsilon, **given)


BINARY, MANY = of(Y, by=BY[1000:], levels=["a", "b"]), of(K)
REGRESSION = of(Z, LinearRegression(), target_range=(-6, 6))


def test_a_roc_curve_has_a_band_around_it():
    display = EvaluationRocDisplay.from_evaluation(BINARY).plot()
    x, y = display.line_.get_data()
    curve = BINARY.roc_curve()
    told = ~np.isnan(curve["recall"] + curve["false_positive_rate"])
    np.testing.assert_array_equal(y[1:-1], curve["recall"][told])
    np.testing.assert_array_equal(x[1:-1], curve["false_positive_rate"][told])
    assert (x[0], y[0], x[-1], y[-1]) == (1, 1, 0, 0)
    band = display.band_.get_path()
    assert all(band.contains_point(point) for point in list(zip(x, y))[5:-5])
    label = display.ax_.get_legend().get_texts()[0].get_text()
    assert label == f"AUC = {BINARY.metric('roc_auc')}"


@pytest.mark.slow
def test_groups_share_axes_and_have_names():
    ax = None
    for level in BINARY.levels:
        display = EvaluationRocDisplay.from_evaluation(BINARY.group(level)).plot(ax)
        ax = display.ax_
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(labels) == 2 and labels[1].startswith("group 'b' (AUC = 0.")
    named = EvaluationRocDisplay.from_evaluation(BINARY, name="all").plot(ax)
    assert named.ax_ is ax and "all (AUC" in ax.get_legend().get_texts()[2].get_text()


@pytest.mark.parametrize("evaluation, unit", [(BINARY, "share of 'ill'"), (REGRESSION, "target")])
def test_calibration(evaluation, unit):
    display = EvaluationCalibrationDisplay.from_evaluation(evaluation).plot()
    curve = evaluation.calibration_curve()
    told = ~np.isnan(curve["predicted"] + curve["observed"])
    np.testing.assert_array_equal(display.points_[0].get_xdata(), curve["predicted"][told])
    np.testing.assert_array_equal(display.points_[0].get_ydata(), curve["observed"][told])
    assert display.ax_.get_xlabel() == f"predicted {unit}" and display.ax_.get_legend() is None
    assert display.points_.has_xerr and display.points_.has_yerr


@pytest.mark.parametrize("evaluation", [BINARY, MANY, BINARY.group("a")])
def test_confusion(evaluation):
    display = EvaluationConfusionDisplay.from_evaluation(evaluation).plot()
    matrix = evaluation.confusion_matrix()
    assert len(display.texts_) == len(matrix) ** 2
    assert display.texts_[0].get_text().startswith(f"{matrix[0][0].value:.0f}\n[")
    names = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert names == [str(label) for label in evaluation.classes]
    assert ("group" in display.ax_.get_title()) == (evaluation.level is not None)


def test_a_threshold_moves_the_matrix():
    first, second = (
        EvaluationConfusionDisplay.from_evaluation(BINARY, threshold=t).matrix for t in (0.2, 0.5)
    )
    assert first[1][1].value > second[1][1].value


def test_what_cannot_be_told_is_left_out():
    noise = of(Y, epsilon=0.01)
    assert EvaluationRocDisplay.from_evaluation(noise).plot().line_.get_xdata().tolist() == [1, 0]
    assert len(EvaluationCalibrationDisplay.from_evaluation(noise).plot().points_[0].get_xdata()) == 0
    assert EvaluationConfusionDisplay.from_evaluation(noise).plot().texts_


@pytest.mark.parametrize(
    "display, evaluation",
    [
        (EvaluationRocDisplay, MANY),
        (EvaluationRocDisplay, REGRESSION),
        (EvaluationRocDisplay, None),
        (EvaluationCalibrationDisplay, MANY),
        (EvaluationCalibrationDisplay, "a"),
        (EvaluationConfusionDisplay, REGRESSION),
        (EvaluationConfusionDisplay, 5),
    ],
)
def test_other_kinds_are_refused(display, evaluation):
    with pytest.raises(TypeError, match="evaluation"):
        display.from_evaluation(evaluation)


def test_bad_questions():
    with pytest.raises(ValueError, match="threshold"):
        EvaluationConfusionDisplay.from_evaluation(MANY, threshold=0.4)
    with pytest.raises(ValueError, match="decisions"):
        EvaluationCalibrationDisplay.from_evaluation(of(Y, LinearSVC()))
