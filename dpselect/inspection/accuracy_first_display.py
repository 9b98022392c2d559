"""Plot an accuracy-first search: the released models, and the answers against the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..model_selection import AccuracyFirstSearchCV
from ..utils.parameters import as_fitted
from ..utils.type_aliases import FloatArray
from .display import Display


@dataclass(kw_only=True, eq=False, repr=False)
class AccuracyFirstDisplay(Display):
    """The released models of an accuracy-first search, against its target.

    Make one with :meth:`from_search`.

    Parameters
    ----------
    epsilons : ndarray of shape (T,)
        The grid.
    read : ndarray of shape (t,)
        Its levels whose models were released.
    tested, answers : ndarray of shape (q,)
        Levels that were asked about, and the noisy answers, in the unit of `target`.
    target : float
    losses : dict of str to float
        What the search has spent on what.
    spent : float
        In all: less than the sum where models and tests read different records.
    best_epsilon : float
        Level of the model that was released in the end.
    method : str
    unit : str, default="loss"
        What the answers measure.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    answers_ : matplotlib Line2D
        The answers; no points for methods that release none.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import AccuracyFirstDisplay, AccuracyFirstSearchCV, DPRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(20_000, 2))
    >>> search = AccuracyFirstSearchCV(
    ...     DPRidge(alpha=0.1, target_range=(-1, 1)), {"epsilon": np.geomspace(0.01, 10, 100)},
    ...     target=0.01,
    ... ).fit(X, X[:, 0])
    >>> AccuracyFirstDisplay.from_search(search).method
    'certified'
    """

    epsilons: FloatArray
    read: FloatArray
    tested: FloatArray
    answers: FloatArray
    target: float
    losses: dict[str, float]
    spent: float
    best_epsilon: float
    method: str
    unit: str = "loss"

    @classmethod
    def from_search(cls, search: AccuracyFirstSearchCV) -> Self:
        """Read a fitted search.

        Parameters
        ----------
        search : AccuracyFirstSearchCV
            Fitted.

        Returns
        -------
        AccuracyFirstDisplay
        """
        check_is_fitted(search)
        search = as_fitted(search)
        (levels,) = search.param_grid.values()
        path, answers = search.path_, np.array([])
        read = path.get("epsilon", np.array([search.best_epsilon_]))
        tested = read[path["tested"]] if path else np.array([])
        if path:
            answers = path["answer"]
        unit, target = str(search.criterion).replace("_", " "), float(search.target)
        if search.criterion == "excess_risk" and search.method_ == "predict_verify":
            # answers are about the root, and may be negative because of noise
            unit, target = "root of the excess risk", float(np.sqrt(target))
        return cls(
            epsilons=np.sort(np.asarray(levels, dtype=float)),
            read=read,
            tested=tested,
            answers=answers,
            target=target,
            losses=_split(search.privacy_),
            spent=search.privacy_.epsilon,
            best_epsilon=search.best_epsilon_,
            method=search.method_,
            unit=unit,
        )

    def _draw(self, ax):
        """Draw the levels that were read, the answers and the target."""
        ax.set(xscale="log", xlim=(self.epsilons[0] / 1.1, self.epsilons[-1] * 1.1))
        ax.axhline(self.target, color="black", linestyle="--", label="target")
        ax.vlines(
            self.read,
            0,
            0.04,
            transform=ax.get_xaxis_transform(),
            color="tab:blue",
            label="models that were released",
        )
        (self.answers_,) = ax.plot(
            self.tested, self.answers, "o", color="tab:blue", label="noisy answers"
        )
        ax.axvline(self.best_epsilon, color="tab:orange", label="the model that is returned")
        handles, labels = ax.get_legend_handles_labels()
        kept = [i for i, label in enumerate(labels) if len(self.answers) or "answers" not in label]
        ax.legend([handles[i] for i in kept], [labels[i] for i in kept], loc="best")
        parts = ", ".join(f"{epsilon:.3g} {name}" for name, epsilon in self.losses.items())
        low = min([0.0, *self.answers])
        high = max([self.target, *self.answers])
        ax.set(
            ylim=(1.15 * low, 1.15 * high + (high == 0)),
            xlabel="epsilon of the model",
            ylabel=self.unit,
            title=f'"{self.method}": epsilon {self.spent:.3g} ({parts})',
        )


def _split(loss):
    """Return the losses of models, tests and steps, by name; blocks of records apart."""
    losses = {}
    for part in loss.parts or (loss,):
        for group in part.parts or (part,):
            name = group.label if group.label in ("generating", "testing") else "on one model"
            if group.label not in ("generating", "testing") and part is not loss.parts[-1]:
                name = "on steps"
            losses[name] = losses.get(name, 0.0) + group.epsilon
    return losses
