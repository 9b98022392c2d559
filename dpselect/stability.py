"""What stability certificates share: the certificate itself, and splits of the records.

A procedure is a pair (G, F): a draw r from G that does not depend on the data, and a
deterministic F(data, parameters, r). A certificate bounds how far one record can move
the score of F at the draw that was made. Because selection draws are independent of the
data and no model trained with them is released, a selection that is private for every
fixed draw is private, with no failure probability delta.

Chaudhuri and Vinterbo 2013, section 3; the page "Selection by stability" of the
documentation has the proofs and the corrections to their theorem 4.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Certificate:
    """Bounds on how far one record moves a score at a fixed draw.

    Attributes
    ----------
    training : float
        a, the movement when one training record is replaced.
    span : float
        The largest difference between two records' contributions to the score; one of m
        validation records moves it by at most b = span / m.
    """

    training: float
    span: float


def margin_certificate(score, radius, movement, norm):
    """Return the certificate of a margin score for a linear classifier.

    Parameters
    ----------
    score : MarginScore
        With Lipschitz constant L.
    radius : float
        R, bound on the l2 norm of a row.
    movement : float
        How far one training record can move w, in l2 norm.
    norm : float or ndarray
        Bound on ||w|| at the draw.

    Returns
    -------
    Certificate
        a = min(span, L R movement) and the span of g over margins up to R ||w||, both
        averaged over the entries of `norm` (one for each one-vs-rest problem).
    """
    span = np.asarray(score.span(radius * np.asarray(norm)))
    training = np.minimum(span, score.lipschitz * radius * movement)
    return Certificate(training=float(training.mean()), span=float(span.mean()))


@dataclass(frozen=True)
class SplitPatterns:
    """The distinct ways in which records take part in J splits, and the splits' sizes.

    Attributes
    ----------
    in_train, in_test : ndarray of shape (n_patterns, J)
        How often a record of each pattern occurs in T_j and V_j.
    train_sizes, test_sizes : ndarray of shape (J,)
        |T_j| and |V_j|.
    """

    in_train: np.ndarray
    in_test: np.ndarray
    train_sizes: np.ndarray
    test_sizes: np.ndarray

    @classmethod
    def from_splits(cls, splits, n_samples):
        """Count the patterns of `splits`.

        Parameters
        ----------
        splits : list of (train, test)
            J pairs of index arrays, fixed without looking at the records; an index may
            occur several times.
        n_samples : int
            Number of records n.

        Returns
        -------
        SplitPatterns
        """
        counts = [_counts(part, n_samples) for split in splits for part in split]
        # merge one column after the other, so that the labels stay small integers
        pattern, first = np.zeros(n_samples, dtype=np.int64), np.zeros(1, dtype=np.int64)
        for column in counts:
            pattern *= int(column.max()) + 1
            pattern += column
            pattern, first = _relabelled(pattern)
        table = np.array([column[first] for column in counts]).T
        sizes = np.array([[len(part) for part in split] for split in splits])
        return cls(table[:, 0::2], table[:, 1::2], sizes[:, 0], sizes[:, 1])

    def scaled(self, factor):
        """Return the same splits of `factor` times as many records, for planning."""
        train, test = (
            np.maximum(1, np.rint(factor * sizes)).astype(int)
            for sizes in (self.train_sizes, self.test_sizes)
        )
        return SplitPatterns(self.in_train, self.in_test, train, test)

    def sensitivities(self, training, span):
        """Return how far one record moves each candidate's score averaged over the splits.

        Delta_i = max over records r of
        (1/J) sum_j [(count of r in T_j) a_ij + (count of r in V_j) span_ij / |V_j|].

        Parameters
        ----------
        training, span : ndarray of shape (k, J)
            The certificates of candidate i trained on T_j.

        Returns
        -------
        ndarray of shape (k,)
        """
        movement = training @ self.in_train.T + (span / self.test_sizes) @ self.in_test.T
        return movement.max(axis=1) / len(self.test_sizes)


def _counts(part, n_samples):
    # there are many records, and few of them are named often
    counts = np.bincount(part, minlength=n_samples)
    return counts.astype(np.min_scalar_type(counts.max()))


def _relabelled(labels):
    """Number labels from 0 on; return them and where each occurs.

    As numpy's unique does, which sorts; but the labels here are small.
    """
    where = np.full(int(labels.max()) + 1, -1)
    where[labels] = np.arange(len(labels))
    known = np.flatnonzero(where >= 0)
    number = np.empty(len(where), dtype=np.int64)
    number[known] = np.arange(len(known))
    return number[labels], where[known]
