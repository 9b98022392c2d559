"""What the models of a search learn before it chooses: once for all candidates, public from then on."""

from ..accounting.privacy_loss import Adjacency
from ..base.estimator import Trial
from ..base.learned_numbers import Division, first_releases
from .candidates import one_of_each_kind


class FirstReleases:
    """The parameters of candidates' models that are to be learned first.

    Until they are, the models have stand-ins, with which can be planned.

    Raises
    ------
    ValueError
        If the candidates would need several releases for one parameter.
    """

    def __init__(self, candidates):
        self.releases, self.candidates = {}, {}
        # what is to be learned is "auto", and no number
        learning = {c.kind for c in one_of_each_kind(candidates) if first_releases(c.model)}
        for candidate in (candidate for candidate in candidates if candidate.kind in learning):
            for name, release in first_releases(candidate.model).items():
                self._refuse_another(name, release, candidate)
                self.releases[name] = release
                self.candidates.setdefault(name, []).append(candidate)
        for name, release in self.releases.items():
            for candidate in self.candidates[name]:
                candidate.model.set_params(**{name: release.stand_in})

    def _refuse_another(self, name, release, candidate):
        known = self.candidates.get(name)
        if known is None:
            return
        if release != self.releases[name] or (
            release.reads_rows and known[0].steps_key != candidate.steps_key
        ):
            raise ValueError(
                f'param_grid varies what {name}="auto" is learned from, and each value would be a '
                f"release of its own; write a number for {name}, or fix the steps and norm."
            )

    def divide(self, epsilon, n_samples):
        """Return the Division of an epsilon, once the columns of the candidates are known."""
        # of some models others are not worth it
        self.paying = {
            name: [
                candidate
                for candidate in self.candidates[name]
                if release.pays(candidate.model, candidate.shape(n_samples), epsilon)
            ]
            for name, release in self.releases.items()
        }
        asked = {name: release for name, release in self.releases.items() if self.paying[name]}
        return Division(asked, epsilon)

    @property
    def messages(self):
        """What a plan takes for them, in words."""
        return tuple(
            f'{name}="auto" is learned first; what is said here is about a public guess of it.'
            for name, release in self.releases.items()
            if not release.optional
        )

    def losses(self, division, seeded=False, adjacency=Adjacency.REPLACE_RECORD):
        """Return the losses of what is learned."""
        owners = {name: type(places[0].model).__name__ for name, places in self.candidates.items()}
        return division.losses(owners, seeded, adjacency)

    def learn(self, division, X, y, stream):
        """Learn the numbers from all records, and write them into the models that wait for them."""
        for name, paying in self.paying.items():
            value = None
            if name in division.releases:
                first = paying[0]
                records = Trial(first.model, division.epsilon).records(first.transform(X), y)
                value = division.learn(name, records, stream)
            for candidate in self.candidates[name]:
                candidate.model.set_params(**{name: value if candidate in paying else None})


def do_without(model):
    """Write None for what need not be learned first, where no epsilon is known to pay for it."""
    for name, release in first_releases(model).items():
        if release.optional:
            model.set_params(**{name: None})
