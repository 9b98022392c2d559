"""A statement held against the list of NIST SP 800-226, block by block."""

import numpy as np
import pytest

from dpselect import (
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    Thresholdout,
    coef_interval,
    evaluate,
    privacy_report,
)
from dpselect.preprocessing import tabular_pipeline

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 60))
Y = (X[:, 0] + RNG.normal(size=4000) > 0).astype(int)
PERSONS = np.arange(4000) // 2
BY = np.where(X[:, 1] > 0, "north", "south")
MODEL = DPLogisticRegression(1.0, delta=1e-5, classes=[0, 1], data_norm="auto").fit(
    X[:2000], Y[:2000], groups=PERSONS[:2000]
)


def sections(report):
    return {section.title: section.blocks for section in report.sections}


def test_persons_delta_evaluation_and_groups_leave_no_question():
    evaluation = evaluate(
        MODEL,
        X[2000:],
        Y[2000:],
        epsilon=2.0,
        groups=PERSONS[2000:],
        by=BY[2000:],
        levels=["north", "south"],
    )
    report = privacy_report(MODEL, evaluation=evaluation, about="the records of a clinic")
    said = sections(report)
    asked = {  # what SP 800-226 asks -> words of the answer
        "Who is protected": "each person: all of their rows",
        "What epsilon = 1 means": "delta = 1e-05",
        "Trust model": "The query model is data release",
        "What was bounded, and how": "count as much as one record, by their mean",
        "What is taken to be public": "decided without looking at the records",
        "Bias and utility": "wrong in one direction",
        "How good it is": "Intervals of 95 %",
        "Security and side channels": "Floating-point",
        "What the data curator still has to do": "Collect no more than this release needs",
        "What is not covered": "Other releases from the same records",
        "Budget of the records": "No ledger was given",
        "How it was made": "operating system's entropy",
    }
    for title, words in asked.items():
        assert words in str(said[title]), title
    assert "central model" in said["Trust model"][0]
    assert any(
        row[2].startswith("learned privately: ") for row in said["What was bounded, and how"][2].rows
    )
    rows = said["Bias and utility"][-1].rows
    assert [row[0] for row in rows] == ["north", "south"]
    assert rows[0][1] == str(evaluation.group("north").metric("accuracy"))
    proofs = [row[-1] for row in said["What was released"][2].rows]
    assert 'Theorems 2b and 2c of "A person, not a row"' in proofs
    assert "documentation of its class" not in str(report)


@pytest.mark.parametrize(
    "model, y, proof",
    [
        (DPLinearSVC(delta=1e-5, classes=[0, 1]), Y, "Theorems 2b and 2d"),
        (DPHuberRegressor(delta=1e-5, target_range=(-4, 4)), X[:, 0], "Theorems 2b and 2d"),
        (DPLinearSVC(delta=1e-5, classes=[0, 1], perturbation="output"), Y, "Theorem 1"),
        (DPRidge(delta=1e-5, target_range=(-4, 4)), X[:, 0], "Theorem 3"),
    ],
)
def test_the_theorem_of_persons_with_delta_is_named(model, y, proof):
    report = privacy_report(model.fit(X, y, groups=PERSONS))
    rows = sections(report)["What was released"][1].rows
    assert [row[2:] for row in rows] == [("1e-05", f'{proof} of "A person, not a row"')]


def test_what_was_not_measured_is_said():
    said = sections(privacy_report(MODEL))["Bias and utility"]
    assert "was not measured" in said[-1]
    weighted = evaluate(
        MODEL, X[2000:], Y[2000:], epsilon=1.0, sample_weight=np.ones(2000), max_weight=3.0
    )
    report = privacy_report(MODEL, evaluation=weighted)
    assert "groups of people were not measured" in sections(report)["Bias and utility"][-1]
    assert "each counted by its weight, up to 3" in str(report)
    own = sections(privacy_report(weighted))
    assert own["What was released"][1].rows[0][-1] == 'Theorem 4 of "Evaluation"'


def test_every_bound_of_a_model_is_listed_with_what_lies_beyond():
    density = DPHistogramDensity(bounds=(-4, 4), bin_width=1.0, max_sample_weight=2.0).fit(X[:, :1])
    ridge = DPRidge(target_range=(-4, 4), data_norm=8.0).fit(X, X[:, 0])
    table = tabular_pipeline({"a": (-4, 4)}, DPLogisticRegression(classes=[0, 1])).fit(X[:, :1], Y)
    for model, names in (
        (density, {"bounds", "max_sample_weight"}),
        (ridge, {"target_range", "data_norm"}),
        (table, {"schema", "data_norm", "classes"}),
    ):
        blocks = sections(privacy_report(model))["What was bounded, and how"]
        listed = {row[1] for row in blocks[1].rows}
        assert listed >= names and (model is table or listed == names)
        assert all(row[3] for row in blocks[1].rows)


def test_without_privacy_there_is_nothing_to_hold_against_it():
    model = DPLogisticRegression(float("inf"), classes=[0, 1]).fit(X, Y)
    assert "Trust model" not in sections(privacy_report(model))


def test_a_large_epsilon_has_to_be_justified():
    for epsilon, asked in ((1.0, False), (1.5, True)):
        model = DPLogisticRegression(epsilon, classes=[0, 1]).fit(X, Y)
        assert ("have to say why it is small enough" in str(privacy_report(model))) == asked


def test_a_delta_that_was_not_needed_is_told():
    for delta, told in ((0.0, False), (1e-9, True)):
        model = DPLogisticRegression(1.0, delta=delta, classes=[0, 1]).fit(X[:, :2], Y)
        assert model.privacy_.delta == 0  # few columns: pure noise is shorter
        assert ("A delta was allowed" in str(privacy_report(model))) == told


def test_questions_to_a_holdout_set_are_interactive():
    holdout = Thresholdout(threshold=0.2, noise_rate=0.05, budget=5)
    holdout.fit(X[:1000], Y[:1000], X_holdout=X[1000:], y_holdout=Y[1000:])
    assert "The query model is interactive" in str(sections(privacy_report(holdout))["Trust model"])


def test_intervals_of_persons_name_their_theorem():
    few = X[:, :2]
    model = DPLogisticRegression(classes=[0, 1]).fit(few[:2000], Y[:2000], groups=PERSONS[:2000])
    intervals = coef_interval(
        model, few[2000:], Y[2000:], epsilon=3.0, n_samples=1000, groups=PERSONS[2000:]
    )
    rows = sections(privacy_report(intervals))["What was released"][1].rows
    assert [row[-1] for row in rows] == ['Theorem 1 of "Intervals of coefficients"']
