import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline

from dpselect import DPLogisticRegression, StabilityGridSearchCV
from dpselect.model_selection.progress import Progress

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")


class Recorder:
    """A callback that keeps what it is given."""

    def __init__(self):
        self.tasks, self.given, self.ended = [], [], 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.ended += 1

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None,
                          fitted_estimator=None):
        self.tasks.append((context.task_name, context.max_subtasks))
        self.given += [X, y, metadata, fitted_estimator]
        self.given += [value for name, value in vars(estimator).items() if name.endswith("_")]

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None,
                        fitted_estimator=None):
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


@pytest.mark.parametrize("strategy", ["stability", "optimal_risk", "budget_split", "data_split"])
def test_lines_and_callbacks_tell_which_candidates_are_done(strategy, data, capsys):
    recorder = Recorder()
    fitted = search(strategy, verbose=1).set_callbacks(recorder).fit(*data)
    assert capsys.readouterr().out == "".join(
        f"group of candidates {i} of 2: done\n" for i in (1, 2)
    )
    assert recorder.tasks == [
        ("fit", None), ("group of candidates", 2), ("group of candidates 1", 0),
        ("group of candidates 2", 0),
    ]
    assert recorder.given == [None] * len(recorder.given) and recorder.ended == 1
    assert fitted.best_index_ in (0, 1)


def test_callbacks_end_with_a_failure(data):
    recorder = Recorder()
    with pytest.raises(ValueError, match="NaN"):
        search("stability").set_callbacks(recorder).fit(data[0] + np.nan, data[1])
    assert recorder.ended == 1


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
