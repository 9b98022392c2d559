from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline

from dpselect import (
    CertificateError,
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    StabilityGridSearchCV,
)
from dpselect.base.estimator import Trial
from dpselect.metrics import BrierScore
from dpselect.model_selection.candidates import make_candidates, with_columns
from dpselect.model_selection.strategies import Problem
from dpselect.model_selection.strategies import stability as module
from dpselect.noise import root_stream

from .common import GRID, LOGISTIC, SVC, Untouchable, records, search, seeded, targets

KERNELS = make_pipeline(RBFSampler(n_components=4), clone(LOGISTIC))
WIDTHS = {"rbfsampler__gamma": [0.1, 1.0]}
BOTH = {**WIDTHS, "dplogisticregression__alpha": [0.003, 0.03, 0.3]}


def strategy(n=1000, p=3):
    """The strategy itself, for a grid over alpha."""
    candidates = with_columns(make_candidates(LOGISTIC, GRID, trusted_steps=()), p, None)
    splits = [tuple(np.split(np.arange(n), [4 * n // 5]))]
    jobs = {"n_jobs": None, "pre_dispatch": "2*n_jobs"}
    return module.Stability(Problem(candidates, BrierScore(), splits, n, p, 1.0, jobs=jobs))


def choices(monkeypatch, scores, runs):
    """How often each candidate is chosen if these were the scores."""
    monkeypatch.setattr(module, "exact_scores", lambda *args, **kwargs: np.array(scores))
    choose = strategy().choose
    return np.bincount([choose(None, None, root_stream(i)).best for i in range(runs)], minlength=3)


def test_the_noise_of_fits_varies_around_that_of_the_plan():
    plan = search("stability").plan(1000, 3)
    spans = [seeded(search("stability"), seed).fit(*records()).plan_.span[0] for seed in range(12)]
    assert min(spans) < plan.span[0] < max(spans)


@pytest.mark.parametrize(
    "model, grid, share",
    [
        (LOGISTIC, GRID, 0.1),
        (SVC, GRID, 0.1),
        (LOGISTIC, {"intercept_scaling": [0.5, 1.0]}, 0.5),
        (LOGISTIC, {**GRID, "intercept_scaling": [0.5, 1.0]}, 0.5),
        (KERNELS, WIDTHS, 0.5),
        (DPRidge(perturbation="output", norm="l2", target_range=(-1, 1)), {"alpha": [1.0, 10.0]}, 0.5),
        (DPHistogramDensity(bounds=(-1, 1)), {"bin_width": [0.5, 1.0]}, 0.3),
    ],
    ids=["alpha", "svc", "constant", "both", "kernels", "ridge", "histogram"],
)
def test_the_share_reads_what_varies_and_no_record(model, grid, share):
    s = search("stability", model, grid, epsilon=2.0)
    planned = s.plan(300, 3)
    shares = pytest.approx([2 * share, 2 - 2 * share], rel=1e-12)
    assert [planned.selection_epsilon, planned.training_epsilon] == shares
    X, y = records(300)
    y = targets(X) if isinstance(model, DPRidge) else y
    for rows, labels in ((X, y), (0 * X, y[::-1])):
        s.fit(rows, labels)
        assert [loss.epsilon for loss in s.privacy_.releases] == shares
        assert s.privacy_.epsilon == 2.0


@pytest.mark.slow
def test_where_scores_say_nothing_the_public_rule_decides(monkeypatch):
    runs, k = 60, 3
    preferred = strategy().preferred
    assert preferred == [0]
    # proved: less than 1 / (4 k)
    limit = binom.isf(1e-6, runs, 1 / (4 * k))
    assert runs - choices(monkeypatch, np.zeros(k), runs)[preferred[0]] <= limit
    monkeypatch.setattr(module, "HEAD_START", 0.0)
    assert runs - choices(monkeypatch, np.zeros(k), runs)[preferred[0]] > limit


@pytest.mark.slow
def test_scores_that_are_clearly_better_overrule_the_public_rule(monkeypatch):
    runs = 40
    # proved: one half, if the difference is more than three times what it detects
    limit = binom.ppf(1e-6, runs, 0.5)
    better = [0.0, 0.0, 3.5 * strategy().plan().minimum_detectable_difference]
    assert choices(monkeypatch, better, runs)[2] >= limit
    monkeypatch.setattr(module, "HEAD_START", 20.0)
    assert choices(monkeypatch, better, runs)[2] < limit


HISTOGRAM = DPHistogramDensity(bounds=(-1, 1))


@pytest.mark.parametrize("model, grid", [(LOGISTIC, GRID), (HISTOGRAM, {"bin_width": [0.1, 0.5, 1.0]})])
@pytest.mark.parametrize("broken", [False, True])
def test_the_head_start_is_public(model, grid, broken, monkeypatch):
    """Equal on records that differ in everything, at the same noise."""
    if broken:  # it starts where the records are
        starts = module.Stability._head_starts
        monkeypatch.setattr(
            module.Stability,
            "_head_starts",
            lambda self, plan: starts(self, plan) * (1 + abs(exact[-1]).max()),
        )
    given, exact = [], []
    choose, score = module.noisy_argmax, module.exact_scores

    def spy_scores(*args, **kwargs):
        exact.append(score(*args, **kwargs))
        return exact[-1]

    def spy_choice(scores, *args):
        given.append(scores)
        return choose(scores, *args)

    monkeypatch.setattr(module, "exact_scores", spy_scores)
    monkeypatch.setattr(module, "noisy_argmax", spy_choice)
    X, y = records()
    fits = [
        seeded(search("stability", model, grid)).fit(*data)
        for data in ((X, y), (-2 * X, np.ones_like(y)))
    ]
    one, two = (np.asarray(g) - e for g, e in zip(given, exact))
    assert (exact[0] != exact[1]).any()
    assert np.allclose(one, two, rtol=0, atol=1e-12) == (not broken)
    if broken:
        return
    multiple = 2 if model is LOGISTIC else 1
    expected = np.zeros(3)
    expected[one.argmax()] = multiple * fits[0].plan_.minimum_detectable_difference
    np.testing.assert_allclose(one, expected, rtol=0, atol=1e-12)
    assert fits[0].plan_.messages == fits[1].plan_.messages


def test_each_set_of_other_parameters_has_its_preferred_alpha():
    plan = search("stability", KERNELS, BOTH).plan(1000, 3)
    said = plan.messages[-1]
    assert said.count("alpha=") == 2 and "gamma=0.1;" in said and "gamma=1," in said
    assert f"better by about {2 * plan.minimum_detectable_difference:.2g}" in said


@pytest.mark.parametrize(
    "model, grid",
    [
        (KERNELS, WIDTHS),
        (LOGISTIC, {"alpha": [0.1]}),
        (HISTOGRAM, {"noise": ["laplace", "discrete_laplace"]}),
    ],
    ids=["kernels", "single", "histogram"],
)
def test_no_head_start_where_it_makes_no_difference(model, grid):
    plan = search("stability", model, grid).plan(1000, 3)
    assert not any("public rule" in text for text in plan.messages)


def test_a_model_without_certificate_is_refused_before_the_data():
    # more than alpha varies, so that one release cannot serve all
    with pytest.raises(CertificateError, match="covariance"):
        grid = {"target_range": [(-1, 1), (-2, 2)]}
        search("stability", DPRidge(), grid).fit(Untouchable(), Untouchable())


def asked_for(monkeypatch, n_noise_samples, of_all):
    """Return with which probability one noise sample of some candidate is longer than is taken."""
    asked, certificate = [], Trial.certificate

    def spy(self, score, shape, failure_probability=None):
        asked.append(failure_probability)
        return certificate(self, score, shape, failure_probability)

    chosen = search("stability", delta=1e-3, n_noise_samples=n_noise_samples)
    kept = module.Stability.choose

    def choose(self, X, y, stream):
        with monkeypatch.context() as patch:
            patch.setattr(Trial, "certificate", spy)
            if not of_all:  # the broken variant, which forgets that there are several noise samples
                self.problem = replace(self.problem, n_noise_samples=1)
            return kept(self, X, y, stream)

    with monkeypatch.context() as patch:
        patch.setattr(module.Stability, "choose", choose)
        chosen.fit(*records())
    # the bound is that of any sample, and each is longer with this probability
    return max(asked) * n_noise_samples * len(chosen.param_grid["alpha"])


@pytest.mark.parametrize("n_noise_samples", [1, 4])
def test_all_certificates_together_fail_with_the_delta_that_is_stated(n_noise_samples, monkeypatch):
    assert asked_for(monkeypatch, n_noise_samples, True) == pytest.approx(1e-3)
    if n_noise_samples > 1:
        assert asked_for(monkeypatch, n_noise_samples, False) > 2e-3


def test_advice_on_more_records_than_a_model_takes_ends_no_plan():
    """How many records would be enough is asked of models with so many, which may be refused."""
    model = DPLogisticRegression(classes=[0, 1], data_norm=3.5, data_norm_l1=10.0)
    search = StabilityGridSearchCV(model, {"max_derivative": [0.6, 0.8]}, strategy="stability")
    said = "\n".join(search.plan(20_000, 330).messages)
    assert "underpowered" in said and "n_samples >=" not in said and "epsilon >=" in said
