"""A model and a score that reveal as much of one record as their statements allow, for attacks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..base.certificates import Certificate, RiskBound
from ..base.estimator import PrivateClassifier
from ..exceptions import CertificateError
from ..metrics import Score
from ..noise import InnerStream
from ..records.public_shape import PublicShape
from ..records.records import Records, Weighted, on_records, split_weights

# probability of an answer to one question; the other one gets exp(-epsilon) times it
MIDDLE = 0.25
# answers are 0, 1, 2, or with probability delta the truth, encoded by the last two
LARGEST = 4.0


@dataclass(frozen=True)
class TellingNoise:
    """The noise calibration of a Telling."""

    epsilon: float
    delta: float
    shape: PublicShape

    def certificate(self, score, noise=None, failure_probability=None):
        if not isinstance(score, ColumnScore):
            raise CertificateError(f"No certificate exists for {type(score).__name__}.")
        return Certificate(1.0 if score.revealing else 0.0, score.width)

    def risk_bound(self, reach):
        return RiskBound(1 / self.shape.n_samples, 0.0, 0.0, 1.0, ("share",))


class Telling(PrivateClassifier):
    """A model that reveals, by randomised response, whether some training record asks for it.

    Of 2 k + 1 columns k are scores, k questions, and the last one numbers the records. The i-th model
    answers whether any record has more than 1/2 in the i-th column of questions, as clearly as its loss
    allows. Each of the answers 0, 1 and 2 is exp(epsilon) times as likely on one side as on the other,
    and one is rare on both.

    Parameters
    ----------
    alpha : float, default=1.0
        The number of the model, from 1 on. It has the name of the parameter that most grids vary.
    classes : array-like of shape (2,), default=(0, 1)
    delta : float, default=0.0
        Probability with which the answer is the truth.
    epsilon : float, default=1.0
    ledger : PrivacyLedger, default=None
    random_state : None, int, SeedSequence, RandomState, Generator or InnerStream, default=None

    Attributes
    ----------
    answer_ : float
        Released.
    trained_epsilon_ : float
        What the answer has cost, whatever is stated.
    """

    default_scoring = "brier"
    takes_groups = True
    # if it is a list, it collects (whether it is a fit, the key of its noise) of all trained models
    log: ClassVar[list[Any] | None] = None

    def __init__(
        self, alpha=1.0, classes=(0, 1), delta=0.0, epsilon=1.0, ledger=None, random_state=None
    ):
        self.alpha = alpha
        self.classes = classes
        self.delta = delta
        self.epsilon = epsilon
        self.ledger = ledger
        self.random_state = random_state

    def __sklearn_clone__(self):
        return type(self)(**self.get_params(deep=False))

    def check_takes_weights(self):
        """Accept weights; records of weight 0 do not take part."""

    def fit(self, X, y=None, *, sample_weight=None, groups=None):
        if Telling.log is not None:
            Telling.log.append((True, _key(self.random_state)))
        return super().fit(X, Weighted.of(y, sample_weight), groups=groups)

    def _check_records(self, X, y):
        # no checks: attacks train it thousands of times on their own arrays
        X, (y, weight) = np.asarray(X, dtype=np.float64), split_weights(y)
        public = {"classes_": np.asarray(self.classes), "n_features_in_": X.shape[1]}
        return Records(X, y, public, weight)

    def _what(self):
        return "an answer"

    def _calibration(self, shape, epsilon):
        return TellingNoise(float(epsilon), float(self.delta), shape)

    def _noise_sample(self, shape, epsilon, random_state):
        if Telling.log is not None:
            Telling.log.append((False, _key(random_state)))
        return super()._noise_sample(shape, epsilon, random_state)

    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        return generator.random(2)

    def _release(self, records, calibration, noise):
        column = records.X[:, records.X.shape[1] // 2 + self._place()]
        if records.weight is not None:
            column = np.where(records.weight > 0, column, 0.0)
        asked = bool((column > 0.5).any())
        less = math.exp(-calibration.epsilon)
        # probabilities of the first two answers; the third has the remaining one
        law = (
            [0.75 - less / (1 + less), MIDDLE]
            if asked
            else [less * (1 / (1 + less) - MIDDLE), less * MIDDLE]
        )
        answer = float(np.searchsorted(np.cumsum(law), noise[0], side="right"))
        if noise[1] < calibration.delta:
            answer = LARGEST - asked
        return {"answer_": answer, "trained_epsilon_": calibration.epsilon}

    def _place(self):
        return int(self.alpha) - 1

    def decision_function(self, X):
        return np.asarray(X, dtype=np.float64)[:, self._place()] - 0.5


def _key(random_state):
    """Return the key of a stream, without drawing from it."""
    return vars(random_state)["key"] if isinstance(random_state, InnerStream) else None


class BoundedTelling(Telling):
    """A Telling with a known least risk: one less the mean of the column of scores."""

    def risk_bound(self, n_samples: int, n_features: int, *args: Any) -> RiskBound:
        return self.calibration(PublicShape(n_samples, n_features)).risk_bound(1.0)

    @staticmethod
    def optimal_values(trials: Any, X: Any, y: Any, reach: float) -> list[float]:
        grid = tuple({"alpha": trial.model.alpha} for trial in trials)
        score = ColumnScore(grid)
        return [1 - on_records(score, trial.model, X, y) for trial in trials]


@dataclass(frozen=True)
class ColumnScore(Score):
    """Four times the mean of the column with a candidate's position in the grid, within [0, 1].

    So each record has a score for each candidate, and one of m records moves a score by up to 4 / m,
    whatever the models are: a strategy that takes any score for one of width 1 adds too little noise.
    With `revealing`, three quarters of the score are the answer of a :class:`Telling`.

    Parameters
    ----------
    grid : tuple of dict
        Parameters of the candidates.
    revealing : bool, default=False
    """

    grid: tuple[Mapping[str, Any], ...]
    revealing: bool = False
    width = 4.0
    stake = 4.0
    # if it is a list, it collects the indices of the records that models are scored on
    log: ClassVar[list[Any] | None] = None

    def place(self, model: Any) -> int:
        """Return the index of a model's candidate."""
        params = model.get_params(deep=False)
        for i, given in enumerate(self.grid):
            if all(params.get(name.rpartition("__")[2]) == value for name, value in given.items()):
                return i
        return 0

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Score a model.

        Parameters
        ----------
        estimator : estimator
        X : array-like of shape (m, p)
        y : array-like of shape (m,), default=None
            Has no part in it.
        sample_weight : array-like of shape (m,), default=None

        Returns
        -------
        float
        """
        if ColumnScore.log is not None:
            ColumnScore.log.append(np.asarray(X)[:, -1].astype(int))
        column = np.clip(np.asarray(X, dtype=np.float64)[:, self.place(estimator)], 0.0, 1.0)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        likes = float(np.average(column, weights=weight))
        fraction = (3 * estimator.answer_ / LARGEST + likes) / 4 if self.revealing else likes
        return self.width * fraction
