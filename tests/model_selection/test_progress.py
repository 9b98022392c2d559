import copy
import logging
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline

from dpselect import AccuracyFirstSearchCV, DPLogisticRegression, StabilityGridSearchCV
from dpselect.model_selection.progress import Progress
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.noise import root_stream

try:
    from sklearn import callback
except ImportError:
    callback = None
needs_callbacks = pytest.mark.skipif(callback is None, reason="scikit-learn before 1.9")


class Recorder:
    """A callback that keeps what it is given."""

    def __init__(self):
        self.tasks, self.given, self.ended = [], [], 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.ended += 1

    def on_fit_task_begin(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        self.tasks.append((context.task_name, context.max_subtasks))
        self.given += [X, y, metadata, fitted_estimator]
        self.given += [value for name, value in vars(estimator).items() if name.endswith("_")]

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        self.given += [X, y, metadata, fitted_estimator]
        return True  # which must not stop a search


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(300, 2))
    return X, (X[:, 0] > 0).astype(int)


def search(strategy, **parameters):
    kernels = make_pipeline(
        RBFSampler(n_components=5), DPLogisticRegression(classes=[0, 1], data_norm=1.5)
    )
    return StabilityGridSearchCV(
        kernels, {"rbfsampler__gamma": [0.1, 1.0]}, strategy=strategy, epsilon=20.0, **parameters
    )


@needs_callbacks
@pytest.mark.parametrize("strategy", ["stability", "optimal_risk", "budget_split", "data_split"])
def test_lines_and_callbacks_tell_which_candidates_are_done(strategy, data, capsys):
    recorder = Recorder()
    fitted = search(strategy, verbose=1).set_callbacks(recorder).fit(*data)
    choice = f"choosing among 2 candidates by '{strategy}'"
    training = ["training the chosen model on 300 records"] * (strategy in ("stability", "optimal_risk"))
    assert capsys.readouterr().out.splitlines() == [
        choice,
        *(f"group of candidates {i} of 2: done" for i in (1, 2)),
        *training,
    ]
    assert recorder.tasks == [
        ("fit", None),
        (choice, 0),
        ("group of candidates", 2),
        ("group of candidates 1", 0),
        ("group of candidates 2", 0),
        *((step, 0) for step in training),
    ]
    assert recorder.given == [None] * len(recorder.given) and recorder.ended == 1
    assert fitted.best_index_ in (0, 1)


@needs_callbacks
def test_callbacks_end_with_a_failure(data):
    recorder = Recorder()
    with pytest.raises(ValueError, match="NaN"):
        search("stability").set_callbacks(recorder).fit(data[0] + np.nan, data[1])
    assert recorder.ended == 1


@needs_callbacks
@pytest.mark.parametrize("method", ["above_threshold", "theory"])
def test_callbacks_of_accuracy_first_are_given_no_result(method, data):
    recorder = Recorder()
    fitted = accuracy_first(method, evaluation=0.2).set_callbacks(recorder).fit(*data)
    assert recorder.tasks[-1] == ("evaluating the model on what was set aside", 0)
    assert {id(given) for given in recorder.given} <= set(map(id, (None, fitted.plan_, fitted.method_)))


@needs_callbacks
@pytest.mark.filterwarnings("ignore:.*does not support callbacks:UserWarning")
def test_without_privacy_a_bar_is_told_of_each_fit(data):
    """Callbacks that are propagated; others are told of the steps of the search alone."""

    class Bar(Recorder):
        max_propagation_depth = None

    bar, recorder = Bar(), Recorder()
    exact = search("stability", cv=3).set_params(epsilon=float("inf"))
    exact.set_callbacks(bar, recorder).fit(*data)
    assert [name for name, _ in recorder.tasks] == ["fit", "exact scores of all candidates"]
    assert len(bar.tasks) >= len(recorder.tasks) + 2 * 3


@needs_callbacks
def test_progress_bars_and_copies(data):
    pytest.importorskip("rich")
    bar = callback.ProgressBar()
    fitted = search("stability").set_callbacks(bar).fit(*data)
    assert pickle.loads(pickle.dumps(fitted)).best_index_ == fitted.best_index_
    copy.deepcopy(clone(fitted)).fit(*data)


def test_nothing_is_told_without_a_search(capsys):
    with Progress() as progress:
        assert list(progress.over("ab", "letter")) == ["a", "b"]
    assert capsys.readouterr().out == ""


def accuracy_first(method, **parameters):
    model = DPLogisticRegression(classes=[0, 1], alpha=0.1, perturbation="output")
    return AccuracyFirstSearchCV(
        model,
        {"epsilon": np.geomspace(0.1, 1000, 12)},
        target=0.05,
        method=method,
        max_epsilon=float("inf"),
        on_failure="last",
        **parameters,
    )


SEARCHES = {
    **{
        name: lambda name=name, **given: StabilityGridSearchCV(
            DPLogisticRegression(classes=[0, 1]), {"alpha": [0.01, 1.0]}, strategy=name, **given
        )
        for name in STRATEGIES
        if name not in ("auto", "control")
    },
    **{
        name: lambda name=name, **given: accuracy_first(name, **given)
        for name in ("certified", "above_threshold", "predict_verify", "doubling")
    },
}


def told(search, X, y, caplog, capsys):
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="dpselect"):
        search.fit(X, y)
    lines = [record.getMessage() for record in caplog.records]
    assert capsys.readouterr().out.splitlines() == (lines if search.verbose else [])
    assert {record.name for record in caplog.records} == {f"dpselect.{type(search).__name__}"}
    return lines


@pytest.mark.parametrize("name", SEARCHES)
def test_what_is_told_does_not_depend_on_records_or_noise(name, data, caplog, capsys):
    X, y = data
    quiet = told(SEARCHES[name](evaluation=0.2), X, y, caplog, capsys)
    # labels that nothing explains: the choice, the level and the solver's steps are others
    noise = np.random.default_rng(1).permutation(y)
    for _ in range(3):
        assert quiet == told(SEARCHES[name](evaluation=0.2, verbose=1), X, noise, caplog, capsys)
    assert quiet[-1] == "evaluating the model on what was set aside"


def test_a_twin_that_tells_of_each_training_is_caught(data, caplog, capsys, monkeypatch):
    fit = DPLogisticRegression.fit

    def telling_fit(self, *args, **params):
        logging.getLogger("dpselect.StabilityGridSearchCV").info("training")
        return fit(self, *args, **params)

    monkeypatch.setattr(DPLogisticRegression, "fit", telling_fit)
    random = SEARCHES["random_stopping"]
    found = {len(told(random(random_state=root_stream(i)), *data, caplog, capsys)) for i in range(4)}
    assert len(found) > 1
