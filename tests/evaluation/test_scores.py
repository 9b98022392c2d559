"""Cells of records: every record in one of them, whatever a model says."""

import numpy as np
import pytest

from dpselect.evaluation.release import count
from dpselect.evaluation.score_bins import (
    EDGES,
    N_BINS,
    PROBABILITIES,
    BinaryCells,
    probabilities,
    score_bins,
)


def test_edges():
    assert EDGES[0] == 0 and EDGES[-1] == 1 and EDGES[16] == 0.5
    assert (np.diff(EDGES) > 0).all()
    assert (EDGES[:-1] < PROBABILITIES).all() and (EDGES[1:] > PROBABILITIES).all()


def test_a_score_on_an_edge_is_below_it():
    assert score_bins(np.array([0.5, np.nextafter(0.5, 1)])).tolist() == [15, 16]
    np.testing.assert_array_equal(score_bins(EDGES[1:]), np.arange(N_BINS))
    np.testing.assert_array_equal(score_bins(PROBABILITIES), np.arange(N_BINS))


def test_every_number_has_a_bin():
    odd = np.array([np.nan, np.inf, -np.inf, -3.0, 1e300, 0.0, 1.0])
    assert score_bins(odd).tolist() == [0, 31, 0, 0, 31, 0, 31]
    counts = count(BinaryCells(np.array([0, 1]), True), 1, odd, np.array([0, 1, 1, 0, 1, 0, 1]))
    assert counts.sum() == 7 and counts.dtype == np.int64
    assert counts[0] == 3 and counts[-1] == 3 and counts[1] == 1


class Says:
    def __init__(self, **said):
        for name, value in said.items():
            setattr(self, name, lambda X, value=value: value)


def test_scores_of_models():
    assert probabilities(Says(predict_proba=np.array([[0.2, 0.8]])), None).tolist() == [0.8]
    decided = probabilities(Says(decision_function=np.array([0.0, 1000.0, -1000.0])), None)
    assert decided.tolist() == [0.5, 1.0, 0.0]


@pytest.mark.parametrize("said", [np.ones((2, 3)), np.ones(2), np.ones((2, 2, 1))])
def test_other_shapes_are_refused(said):
    # one record would count in several cells
    with pytest.raises(ValueError, match="count more than once"):
        probabilities(Says(predict_proba=said), None)
