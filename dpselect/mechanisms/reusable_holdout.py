"""Thresholdout: answer with the training value while the holdout agrees, else with a noisy one.

A function of numbers with a memory; it knows nothing of estimators. The page "Reusable holdout" of
the documentation has statement and proof.
"""

import os
import threading

from ..exceptions import BudgetExceededError
from ..noise import as_generator, grid_laplace, root_stream
from .above_threshold import Comparisons, ThresholdTest


class ReusableHoldout:
    """Answer queries about a holdout set, until `budget` of them have used it.

    The `threshold` T and the `noise_rate` sigma are in units of a question's width: one of the
    `n_holdout` records, n, moves a question of width w by at most w / n. `uses` counts the answers
    that came from the holdout set so far, and `epsilon`, 2 B / (sigma n), is the privacy loss of
    all answers that can ever be given, in the holdout records.

    One round of above threshold with noise of scales 2 sigma and 4 sigma ends at each use and costs
    1 / (sigma n); the answer, with noise of scale sigma, costs as much again. Dwork, Feldman,
    Hardt, Pitassi, Reingold and Roth, *Generalization in Adaptive Data Analysis and Holdout Reuse*,
    2015, algorithm Thresholdout.

    The memory is the account of what was spent. It is neither copied nor pickled, and answers only
    in the process that made it: each copy would spend the whole budget. Threads may share it.
    """

    def __init__(self, threshold, noise_rate, budget, n_holdout, random_state=None):
        self.noise_rate = noise_rate
        self.budget = budget
        self.n_holdout = n_holdout
        self.uses = 0
        # the mechanism is for losses, so it gets minus the differences
        self._test = ThresholdTest(
            1 / (noise_rate * n_holdout), -threshold, 2 * noise_rate, 4 * noise_rate
        )
        self._root = root_stream(random_state)
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._begin_round()

    @property
    def epsilon(self):
        return 2 * self.budget / (self.noise_rate * self.n_holdout)

    @property
    def spent(self):
        """float : Ex-post loss of the answers so far, (2 u + 1/2) / (sigma n) after u uses.

        The half is for the round that has begun, and is left out if nothing was asked in it.
        """
        return (2 * self.uses + 0.5 * self._asked) / (self.noise_rate * self.n_holdout)

    def refuse_if_spent(self):
        """Raise BudgetExceededError if the budget is spent, before a query is evaluated."""
        if self.uses >= self.budget:
            raise BudgetExceededError(
                f"The holdout set has been used budget={self.budget} times, and the privacy loss "
                "covers no more answers; ask fewer questions, or fit with a larger budget."
            )

    def answer(self, train_value, holdout_value, width=1.0):
        """Answer one query, from means over the training and the holdout records.

        `width`, w, is the largest difference of two records' contributions, from public numbers.
        Returns `train_value`, or `holdout_value` with Laplace noise of scale sigma w, on a grid
        that public numbers fix.
        """
        with self._lock:
            self._refuse_other_processes()
            self.refuse_if_spent()
            self._asked = True
            if not self._comparisons.accepts(-abs(holdout_value - train_value) / width):
                return float(train_value)
            noise = as_generator(self._root.child("answer", self.uses))
            self.uses += 1
            self._begin_round()
            scale, loss = self.noise_rate * width, 1 / (self.noise_rate * self.n_holdout)
            return float(grid_laplace(noise, holdout_value, scale, loss))

    def _begin_round(self):
        self._comparisons = Comparisons(self._test, self._root.child("round", self.uses))
        self._asked = False

    def _refuse_other_processes(self):
        if os.getpid() != self._process:
            raise RuntimeError(
                "A reusable holdout answers only in the process that made it, because each copy "
                "would spend the whole budget; ask from that process, or use threads."
            )

    def __reduce__(self):
        raise TypeError(
            "A reusable holdout cannot be pickled or copied, because each copy would spend the "
            "whole budget; fit it where it is needed, or use threads."
        )
