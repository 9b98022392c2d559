"""Numbers that a fit learns before it trains, each by a small release of its own.

A parameter that is "auto" in this sense is learned from the records with a fraction of epsilon. The
remaining epsilon trains the model, with the number as if it had been given. The page "First releases" of
the documentation has statement and proof.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..accounting.privacy_loss import KINDS, Adjacency, PrivacyLoss, remainder
from ..noise import all_finite, as_generator
from ..utils.parameters import as_fitted

# fraction of epsilon for a number, where public numbers decide nothing else
FRACTION = 1 / 20


class FirstRelease(ABC):
    """Release of one number; a subclass writes `learn`, which must be private.

    Two are equal if they release the same: then one release serves several candidates of a search.

    Attributes
    ----------
    what : str
        What is released, in words.
    stand_in : object
        Placeholder used for planning, before any record is read.
    optional : bool
        Whether None in its place does without it.
    reads_rows : bool
        Whether it depends on the rows as the model sees them, and not on labels alone.
    fraction : float
        Of the epsilon of the fit, greater than 0 and less than 1.
    delta : float
        Of the release.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect.linear_model.norms_and_rates import MedianNorm
    >>> from dpselect.noise import as_generator
    >>> from dpselect.records import Records
    >>> records = Records(np.full((5000, 1), 3.0), None, {})
    >>> MedianNorm("l2").learn(records, 1.0, as_generator())  # the upper end of a cell
    3.36...
    """

    what: str
    stand_in: Any
    optional: ClassVar[bool] = False
    reads_rows: ClassVar[bool] = True
    fraction: float = FRACTION
    delta: float = 0.0

    def event(self, epsilon):
        """Return the Event of a release with a loss of epsilon, or None.

        Parameters
        ----------
        epsilon : float

        Returns
        -------
        Event or None
        """
        return None

    def planned(self, model, shape, epsilon):
        """Return the release with its fraction by public numbers, or None if it is not worth its cost.

        Parameters
        ----------
        model : estimator
            With stand-ins for all that is not known.
        shape : PublicShape
        epsilon : float
            Of the whole fit.

        Returns
        -------
        FirstRelease or None
            With None the value is None.
        """
        return self

    @abstractmethod
    def learn(self, records, epsilon, generator):
        """Release the number, with a loss of epsilon.

        Parameters
        ----------
        records : Records
        epsilon : float
            Greater than 0; ``inf`` for no noise.
        generator : numpy.random.Generator
            Of all noise.

        Returns
        -------
        object
            A value of the parameter.
        """


@dataclass(frozen=True)
class Division:
    """Division of an epsilon between first releases, by their parameters, and training."""

    releases: Mapping[str, FirstRelease]
    epsilon: float

    def share(self, name):
        """Return the epsilon of one release."""
        if self.epsilon == math.inf:
            return math.inf
        # in units in which all parts add up without rounding
        unit = math.ulp(self.epsilon)
        return math.floor(self.releases[name].fraction * self.epsilon / unit) * unit

    @property
    def rest(self):
        if not self.releases:
            return self.epsilon
        return remainder(self.epsilon, [self.share(name) for name in self.releases])

    def losses(self, owners, seeded, adjacency=Adjacency.REPLACE_RECORD):
        """Return the losses of the releases; `owners` has the owner of each parameter."""
        seeded = seeded and self.epsilon != math.inf
        return [
            PrivacyLoss(
                self.share(name),
                release.delta if self.epsilon < math.inf else 0.0,
                label=f"{owners[name]}: {release.what}",
                seeded=seeded,
                adjacency=adjacency,
                event=release.event(self.share(name)) if self.epsilon < math.inf else None,
            )
            for name, release in self.releases.items()
        ]

    def learn(self, name, records, stream):
        """Return the value of a parameter, with its own stream of noise."""
        generator = as_generator(stream.child("first", name))
        return all_finite(self.releases[name].learn(records, self.share(name), generator))


def first_releases(model):
    """Return the first releases of a model's parameters that are "auto"; none for most models."""
    # hasattr(): isinstance() on the protocol takes longer than all checks of parameters
    return model.first_releases() if hasattr(model, "first_releases") else {}


def epsilon_of_fit(model):
    """Return the epsilon left by first releases; None if the choice of a search saw the noise."""
    model = as_fitted(model)
    privacy = model.privacy_
    # the parts of a choice's loss are not first releases
    if privacy.composition == "parallel" or privacy.kind != KINDS[0]:
        return None
    # a joint loss is smaller than the sum of its parts, but the parts have spent the sum
    joint = privacy.composition == "joint"
    spent = PrivacyLoss.sequential(privacy.parts).epsilon if joint else privacy.epsilon
    if spent != float(model.epsilon):
        return None
    return privacy.parts[-1].epsilon if first_releases(model) and privacy.parts else spent
