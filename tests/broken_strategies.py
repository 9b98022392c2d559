"""Strategies that break their statement, each in one way, and what finds it.

They are children of one that keeps it: a part of the records is held out, each candidate is trained for
itself on a part of the others, and their scores are compared with noise.
"""

import inspect
import logging
import sys
import warnings
from dataclasses import replace

import numpy as np

from dpselect import PrivacyLoss
from dpselect.base.estimator import Trial
from dpselect.mechanisms import noisy_argmax
from dpselect.model_selection import Choice, Strategy
from dpselect.model_selection.final_fit import fit_for_release
from dpselect.noise import as_generator
from dpselect.records.records import score_on, take_part


class Third(Strategy):
    """Keeps its statement: a third of epsilon is for a choice on held-out records."""

    takes_groups = True
    share = 1 / 3

    def prepare(self):
        self.selection_epsilon = self.problem.selection_epsilon(self.share)
        self.training_epsilon = self.problem.epsilon - self.selection_epsilon

    def choose(self, X, y, stream):
        best = self.best(self.scores(X, y, stream), stream.child("choice").for_release())
        return Choice(best, [self.choice_loss(self.selection_epsilon)])

    def parts(self, stream):
        shuffled = as_generator(stream.child("parts")).permutation(self.problem.n_samples)
        return np.array_split(shuffled, 1 + len(self.problem.candidates))

    def scores(self, X, y, stream):
        test, *parts = self.parts(stream)
        return [
            self.score(candidate, X, y, part, test, stream.child("trial", i).for_release())
            for i, (candidate, part) in enumerate(zip(self.problem.candidates, parts))
        ]

    def score(self, candidate, X, y, part, test, noise):
        rows = candidate.transform(X)
        trial = Trial(candidate.model, self.selection_epsilon, noise)
        return score_on(
            self.problem.score, trial.fitted(*take_part(rows, y, part)), *take_part(rows, y, test)
        )

    def sensitivity(self):
        size = -(-self.problem.n_samples // (1 + len(self.problem.candidates)))
        return self.problem.score.sensitivity(size)

    def best(self, scores, noise):
        return noisy_argmax(
            scores, np.full(len(scores), self.sensitivity()), self.selection_epsilon, noise
        )


class NoNoise(Third):
    def best(self, scores, noise):
        return int(np.argmax(scores))


class WidthOfOne(Third):
    """Adds noise for a score in [0, 1], whatever the score is."""

    def sensitivity(self):
        return super().sensitivity() / self.problem.score.width


class HalfTheNoise(Third):
    def sensitivity(self):
        return super().sensitivity() / 2


class BreaksTies(Third):
    """Of candidates with exactly the same score the first one is taken, after the choice."""

    def best(self, scores, noise):
        return scores.index(scores[super().best(scores, noise)])


class SameTrainingRecords(Third):
    """Trains all candidates on the same records, and states the loss of one of them."""

    def parts(self, stream):
        test, *parts = super().parts(stream)
        return [test, *[np.concatenate(parts)] * len(parts)]


class PartsOfTheLabels(Third):
    """Deals the records out in the order of their labels, so that one label moves many of them."""

    def scores(self, X, y, stream):
        self.order = np.argsort(np.asarray(y), kind="stable")
        return super().scores(X, y, stream)

    def parts(self, stream):
        k = 1 + len(self.problem.candidates)
        return [self.order[j::k] for j in range(k)]


class TrainsOnAll(Third):
    """Trains on all records without noise, and scores on some of these as if they were held out."""

    def score(self, candidate, X, y, part, test, noise):
        rows = candidate.transform(X)
        model = Trial(candidate.model, 1e6, noise).fitted(rows, y)
        return score_on(self.problem.score, model, *take_part(rows, y, test))


class StatesHalf(Third):
    def choose(self, X, y, stream):
        choice = super().choose(X, y, stream)
        return Choice(choice.best, [self.choice_loss(self.selection_epsilon / 2)])


class ForgetsTheTraining(Third):
    """Trains the model itself, and states the choice only."""

    def choose(self, X, y, stream):
        choice = super().choose(X, y, stream)
        winner = self.problem.candidates[choice.best]
        model = fit_for_release(
            winner.model,
            self.training_epsilon,
            stream.child("model").for_release(),
            winner.transform(X),
            y,
        )
        return Choice(choice.best, choice.losses, winner.with_steps(model))


class KeepsScores(Third):
    """Shows the exact scores in `best_params_` and `cv_results_`."""

    def scores(self, X, y, stream):
        scores = super().scores(X, y, stream)
        for candidate, score in zip(self.problem.candidates, scores):
            candidate.params["score"] = score
        return scores


class RemembersScores(Third):
    """Keeps the exact scores in its class, for whoever asks later."""

    last: list = []

    def scores(self, X, y, stream):
        type(self).last = super().scores(X, y, stream)
        return self.last


class StatementOfTheRecords(Third):
    """States less where the best score is far ahead."""

    def choose(self, X, y, stream):
        scores = sorted(self.scores(X, y, stream))
        choice = super().choose(X, y, stream)
        factor = 1.0 if scores[-1] - scores[0] < 0.05 else 0.9
        return Choice(choice.best, [self.choice_loss(factor * self.selection_epsilon)])


class LabelOfTheRecords(Third):
    """Shows an exact score in the label of its loss."""

    def choose(self, X, y, stream):
        choice = super().choose(X, y, stream)
        best = max(self.scores(X, y, stream))
        return Choice(choice.best, [replace(choice.losses[0], label=f"choice, score {best}")])


class Says(Third):
    """Tells the exact scores to whoever watches, in one of several ways."""

    def scores(self, X, y, stream):
        scores = super().scores(X, y, stream)
        self.say(f"scores {scores}")
        return scores


class Prints(Says):
    def say(self, text):
        print(text)


class PrintsErrors(Says):
    def say(self, text):
        print(text, file=sys.stderr)


class Warns(Says):
    def say(self, text):
        warnings.warn(text, UserWarning, stacklevel=2)


class Logs(Says):
    def say(self, text):
        logging.getLogger("selection").warning(text)


class WarnsOfSomeRecords(Third):
    """Shows no number, but whether the best score is far ahead."""

    def scores(self, X, y, stream):
        scores = super().scores(X, y, stream)
        if max(scores) - min(scores) > 0.05:
            warnings.warn("one candidate is far ahead", UserWarning, stacklevel=2)
        return scores


class SameSeed(Third):
    def best(self, scores, noise):
        return super().best(scores, 0)


class GlobalNoise(Third):
    """Takes its noise from numpy's global generator."""

    def best(self, scores, noise):
        scale = 2 * self.sensitivity() / self.selection_epsilon
        return int(np.argmax(scores + np.random.gumbel(scale=scale, size=len(scores))))  # noqa: NPY002


class ReadsInPrepare(Third):
    """Looks at the records of the search that makes it, before anything is reserved."""

    def prepare(self):
        super().prepare()
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_name != "fit":
            frame = frame.f_back
        if frame is not None and frame.f_locals.get("X") is not None:
            self.mean = np.mean(np.asarray(frame.f_locals["X"]))


class LargerEpsilon(Third):
    """Trains the model with the whole epsilon, and writes less into its statement."""

    def choose(self, X, y, stream):
        choice = super().choose(X, y, stream)
        winner = self.problem.candidates[choice.best]
        noise = stream.child("model").for_release()
        model = fit_for_release(winner.model, self.problem.epsilon, noise, winner.transform(X), y)
        model.privacy_ = PrivacyLoss(self.training_epsilon)
        return Choice(choice.best, [*choice.losses, model.privacy_], winner.with_steps(model))


class NoiseTwice(Third):
    """The model has the noise with which it was chosen."""

    def choose(self, X, y, stream):
        choice = super().choose(X, y, stream)
        winner = self.problem.candidates[choice.best]
        noise = stream.child("trial", choice.best).for_release()
        model = fit_for_release(winner.model, self.training_epsilon, noise, winner.transform(X), y)
        return Choice(choice.best, [*choice.losses, model.privacy_], winner.with_steps(model))


class ReservesLess(Third):
    def at_most(self):
        return [PrivacyLoss(self.training_epsilon)]


class PlansLess(Third):
    """Plans a choice that costs nothing."""

    def plan(self):
        return self.make_plan(("nothing is chosen",)) if self.forget() else super().plan()

    def forget(self):
        self.selection_epsilon = 0.0
        return True

    def choose(self, X, y, stream):
        self.prepare()
        return super().choose(X, y, stream)


class RowsOfPersons(Third):
    """Cuts rows where it has numbers of persons."""

    def score(self, candidate, X, y, part, test, noise):
        rows = candidate.transform(X)
        model = Trial(candidate.model, self.selection_epsilon, noise).fitted(rows[part], y[part])
        return self.problem.score(model, rows[test], np.asarray(y[test]))
