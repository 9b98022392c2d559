"""Numbers that the models of a search learn before it chooses: once for all candidates."""

import math
from dataclasses import dataclass, field

from ..accounting.privacy_loss import remainder
from ..base.estimator import Trial
from ..base.learned_numbers import Division, FirstRelease, first_releases
from .candidates import parameters


@dataclass(frozen=True)
class ToLearn:
    """Parameters of the candidates' models that are learned first.

    Attributes
    ----------
    releases : dict of str to FirstRelease
        By the name of the parameter.
    places : dict of str to list of int
        The candidates that wait for it.
    owners : dict of str to str
        The class of what has it.
    """

    releases: dict[str, FirstRelease] = field(default_factory=dict)
    places: dict[str, list[int]] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, candidates, n_samples=None, epsilon=None):
        """Return what is learned first, or refuse several releases for one parameter.

        Of `n_samples` records with at most `epsilon` for a model, if they are known: then ranges are
        learned of no columns that none of the models can read.
        """
        found = cls()
        for i, candidate in enumerate(candidates):
            for name, release in candidate.first_releases(n_samples, epsilon).items():
                if name in found.releases:
                    first = candidates[found.places[name][0]]
                    release = _one_of(name, found.releases[name], release, first, candidate)
                found.releases[name] = release
                found.places.setdefault(name, []).append(i)
                owner = "TableEncoder" if name == "ranges" else type(candidate.model).__name__
                found.owners.setdefault(name, owner)
        return found

    def with_placeholders(self, candidates):
        """Return the candidates with values for planning, before any record is read."""
        values = {name: release.stand_in for name, release in self.releases.items()}
        return self._with_values(candidates, lambda i, name: values[name])

    @property
    def messages(self):
        """Description of how a plan treats them."""
        return tuple(
            f'{name}="auto" is learned first; what is said here is about a public guess of it.'
            for name, release in self.releases.items()
            if not release.optional
        )

    def divide(self, candidates, epsilon, n_samples):
        """Return the Division of an epsilon, and the candidates for which each number is worth it."""
        asked, paying = {}, {}
        for name, release in self.releases.items():
            planned = {
                i: release.planned(candidates[i].model, candidates[i].shape(n_samples), epsilon)
                for i in self.places[name]
            }
            planned = {i: release for i, release in planned.items() if release}
            paying[name] = list(planned)
            if planned:
                # one number serves all, as precise as the candidate with the longest noise needs it
                asked[name] = max(planned.values(), key=lambda release: release.fraction)
        return Division(asked, epsilon), paying

    def losses(self, division, problem):
        """Return the losses of what is learned."""
        return division.losses(self.owners, problem.seeded, problem.adjacency)

    def with_rest_of_delta(self, division, candidates):
        """Return the candidates with models that have what is left of their delta."""
        spent = math.fsum(release.delta for release in division.releases.values())
        if not spent:
            return candidates
        deltas = [float(parameters(candidate.model).get("delta", 0.0)) for candidate in candidates]
        return [
            candidate.with_model_params(delta=max(0.0, remainder(delta, [spent])))
            if delta
            else candidate
            for candidate, delta in zip(candidates, deltas)
        ]

    def learned(self, division, paying, candidates, records, stream):
        """Return the candidates with numbers that are learned from all records."""
        values = {}
        for name, release in division.releases.items():
            first = candidates[paying[name][0]]
            if name == "ranges":
                sums = release.summed(first.rows_of_numbers(release, records.X), records.persons)
                values[name] = division.learn(name, sums, stream)
                continue
            trial = Trial(first.model, division.epsilon)
            rows = trial.records(first.transform(records.X), records.targets())
            values[name] = division.learn(name, rows, stream)
        return self._with_values(candidates, lambda i, name: values[name] if i in paying[name] else None)

    def _with_values(self, candidates, value):
        params = {}
        for name, places in self.places.items():
            for i in places:
                params.setdefault(i, {})[name] = value(i, name)
        return [
            candidate.with_learned(**params[i]) if i in params else candidate
            for i, candidate in enumerate(candidates)
        ]


def _one_of(name, known, release, first, candidate):
    """Return the release that serves both candidates, or refuse another one."""
    if name == "ranges" and known.begins(release):
        return known
    if name == "ranges" and release.begins(known):
        return release
    if release != known or (release.reads_rows and first.steps_key != candidate.steps_key):
        raise ValueError(
            f'param_grid varies what {name}="auto" is learned from, and each value would be a '
            f"release of its own; write a number for {name}, or fix the steps and norm."
        )
    return known


def without_optional_numbers(candidate):
    """Return a candidate that does not learn first what it need not, as no epsilon is known for it."""
    optional = [name for name, release in first_releases(candidate.model).items() if release.optional]
    return candidate.with_model_params(**dict.fromkeys(optional)) if optional else candidate
