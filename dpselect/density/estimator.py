"""Differentially private density estimation: a histogram over public cells.

Chaudhuri and Vinterbo 2013, section 6.3. The page "Histogram density" of the documentation
has statement and proof, and what differs from theirs.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state as numpy_random_state
from sklearn.utils.validation import check_is_fitted

from ..atomic import all_or_nothing
from ..certificates import Certificate
from ..estimator import PrivacyHTMLMixin, release_loss
from ..exceptions import CertificateError
from ..ledger import PrivacyLedger, charged
from ..metrics import IntegratedSquaredErrorScore
from ..noise import (
    as_generator,
    check_random_state,
    grid_step,
    lattice_noise,
    release,
    two_sided_geometric,
)
from ..noise.generators import RandomState
from ..records import numeric_rows
from ..rows import Parts, block_map, block_sum
from ..training_records import remembers_records, warns_of_training_records
from ..type_aliases import Array, FloatArray, MatrixLike
from ..validation import check_choice, check_epsilon, check_number
from .accuracy import HistogramAccuracy
from .cells import Cells, cell_masses, columns_listed, tiling
from .splits import density_split_scores

# one replaced record lowers one count by 1 and raises another
SENSITIVITY = 2.0


class DPHistogramDensity(PrivacyHTMLMixin, DensityMixin, BaseEstimator):
    """Histogram density, released with epsilon-differential privacy.

    Counts the records in equal cells that tile the bounds, adds noise to each count, sets
    negative ones to 0 and divides by their sum and the volume of a cell. If no positive count
    is left, the density is uniform.

    Neighbouring data sets differ in one record. Public are the number of records, the
    columns, the cells, and every parameter.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of the fit, greater than 0; ``inf`` is the exact histogram.
    bin_width : float or array-like of shape (n_features,), default=0.1
        Width of the cells along all columns, or along each, in the units of the data. It
        must divide the range of the bounds.
    bounds : (float, float) or array-like of shape (n_features, 2), default=(0.0, 1.0)
        Lower and upper bound of all columns, or of each, from knowledge of the field and never
        from the records. A record outside is counted in the nearest cell.
    noise : {"laplace", "geometric"}, default="laplace"
        Laplace noise is that of Chaudhuri and Vinterbo, on a fine grid that holds the integers:
        the last bits tell nothing. Geometric noise is made of integers, and its variance is
        smaller.
    ledger : PrivacyLedger, default=None
        Pays for each fit, in place of one that is open (``with ledger:``). If too little is left,
        BudgetExceededError is raised before any data is touched.
    random_state : None, int, SeedSequence, RandomState or Generator, default=None
        None draws noise from a cryptographic generator keyed by the operating system, new
        at each fit. Everything else is for tests: the noise can be drawn again.

    Attributes
    ----------
    density_ : ndarray of shape (n_bins_1, ..., n_bins_D)
        Released density in each cell, per unit of volume.
    bin_edges_ : list of D ndarrays of shape (n_bins_j + 1,)
        Edges of the cells along each column. Upper edges belong to the next cell, and the last
        one to the last cell.
    privacy_ : PrivacyLoss
        What the fit spent.
    n_features_in_ : int
        Number of columns D of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names.

    See Also
    --------
    dpselect.StabilityGridSearchCV : Chooses `bin_width`.
    sklearn.neighbors.KernelDensity : A density with the same methods, not private.

    References
    ----------
    Chaudhuri and Vinterbo, *A Stability-based Validation Procedure for Differentially
    Private Machine Learning*, NIPS 2013, algorithm 5.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPHistogramDensity
    >>> X = np.random.default_rng(0).beta(2, 5, size=(10_000, 1))
    >>> density = DPHistogramDensity(epsilon=1.0, bin_width=0.1).fit(X)
    >>> density.privacy_.epsilon
    1.0
    >>> common, rare = density.score_samples([[0.15], [0.85]])
    >>> bool(common > rare)
    True
    """

    default_scoring = "integrated_squared_error"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bin_width: npt.ArrayLike = 0.1,
        bounds: npt.ArrayLike = (0.0, 1.0),
        noise: Literal["laplace", "geometric"] = "laplace",
        ledger: PrivacyLedger | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.bin_width = bin_width
        self.bounds = bounds
        self.noise = noise
        self.ledger = ledger
        self.random_state = random_state

    @remembers_records
    @all_or_nothing
    def fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Count, add noise and release a density.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Values outside the bounds count as the nearest bound.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted density; `privacy_` states what was spent.

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range, the width does not divide the bounds, there are
            more than 10^7 cells, or X is malformed.

        Warns
        -----
        SeededNoiseWarning
            If `random_state` is not None.
        """
        self._check_parameters()
        loss = release_loss(self, f"histogram with {self.noise} noise")
        with charged(self, loss):
            counts, cells, _ = self._count(X)
            noise = self._draw(as_generator(self.random_state), cells.shape)
            noisy = release(counts, noise.ravel(), self._step())
            self._publish(cell_masses(noisy), cells)
            self.privacy_ = loss
        return self

    def _count(self, X):
        """Return the exact counts, the cells and the number of records."""
        table = numeric_rows(self, X, lazily=True)
        cells = Cells.tile(self.bounds, self.bin_width, *table.shape[::-1])

        def count(block):
            return (np.bincount(cells.index(block), minlength=cells.size),)

        (counts,) = block_sum(count, table)
        return counts, cells, len(table)

    @staticmethod
    def split_scores(
        estimators: Sequence["DPHistogramDensity"],
        score: IntegratedSquaredErrorScore,
        X: MatrixLike,
        y: Any,
        parts: Parts,
    ) -> FloatArray:
        """Fit on each split's training part and score on its other part.

        Records are counted once for all widths that are multiples of one another.

        Parameters
        ----------
        estimators : list of DPHistogramDensity
            They are not fitted.
        score : IntegratedSquaredErrorScore
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        parts : Parts
            Of J splits.

        Returns
        -------
        ndarray of shape (J, k)
            Exact functions of the records, not released.
        """
        return density_split_scores(estimators, X, parts)

    def _publish(self, masses, cells):
        self.density_ = (masses / cells.volume).reshape(cells.shape)
        self.bin_edges_ = list(cells.edges)

    @warns_of_training_records
    def score_samples(self, X: MatrixLike) -> FloatArray:
        """Return the logarithm of the density at rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            ``-inf`` where the density is 0, which it is outside the bounds: unlike `fit`, this
            does not move rows to the nearest cell, or the density would not integrate to 1.

        Warns
        -----
        PrivacyLeakWarning
            If `X` is what the density was fitted on, or a part of it.
        """
        check_is_fitted(self)
        X = numeric_rows(self, X, lazily=True, reset=False)
        cells = Cells(tuple(self.bin_edges_))
        with np.errstate(divide="ignore"):
            log_density = np.log(self.density_.ravel())

        def look_up(block):
            return np.where(cells.contains(block), log_density[cells.index(block)], -np.inf)

        return block_map(look_up, X)

    @warns_of_training_records
    def score(self, X: MatrixLike, y: Any = None) -> float:
        """Return the total log-likelihood of rows, as KernelDensity does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        float
            ``-inf`` as soon as one row has density 0.

        Warns
        -----
        PrivacyLeakWarning
            If `X` is what the density was fitted on, or a part of it.
        """
        (total,) = block_sum(lambda values: (values.sum(),), self.score_samples(X))
        return float(total)

    def sample(
        self,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
    ) -> FloatArray:
        """Draw rows from the released density; that costs no privacy.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : None, int or RandomState, default=None
            As everywhere in scikit-learn. These numbers protect nothing, so a seed does no harm.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        check_number(
            "n_samples", n_samples, integer=True, why="it counts rows",
            instead="write an integer of 1 or more",
        )
        rng = numpy_random_state(random_state)
        masses = self.density_.ravel() / self.density_.sum()
        chosen = np.unravel_index(
            rng.choice(masses.size, size=n_samples, p=masses), self.density_.shape
        )
        rows = np.empty((n_samples, len(self.bin_edges_)))
        for j, (edges, bins) in enumerate(zip(self.bin_edges_, chosen)):
            share = rng.uniform(size=n_samples)
            rows[:, j] = (1 - share) * edges[bins] + share * edges[bins + 1]
        return rows

    def squared_integral(self) -> float:
        """Return the integral of the squared density, per unit of volume.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        masses = self.density_ * Cells(tuple(self.bin_edges_)).volume
        return float(np.sum(masses * self.density_))

    @property
    def score_stake(self) -> float:
        """float : What the true density gains over the uniform one has this order, 1 / volume."""
        limits, _ = tiling(self.bounds, self.bin_width)
        return float(1 / np.prod([high - low for low, high in limits]))

    def unit_noise(self, n_features: int) -> Array:
        """Draw the noise of one fit, from `random_state` and public numbers alone.

        Parameters
        ----------
        n_features : int
            Columns of X.

        Returns
        -------
        ndarray of shape (n_bins_1, ..., n_bins_D)
            What is added to the counts: Laplace variables on a grid, or integers.
        """
        cells = Cells.tile(self.bounds, self.bin_width, n_features)
        return self._draw(as_generator(self.random_state), cells.shape)

    def accuracy_form(self) -> HistogramAccuracy:
        """Return what is known of the accuracy of this estimator's models, for accuracy first.

        Returns
        -------
        HistogramAccuracy
        """
        return HistogramAccuracy(self)

    def stability_certificate(
        self,
        score: IntegratedSquaredErrorScore,
        n_samples: int,
        n_features: int,
        n_problems: int = 1,
        failure_probability: float | None = None,
    ) -> Certificate:
        """Bound how far one record moves the integrated squared error at this draw.

        Parameters
        ----------
        score : IntegratedSquaredErrorScore
        n_samples : int
            Training records n.
        n_features : int
            Columns of X; bounds or widths that are listed by column say it, too, and prevail.
        n_problems : int, default=1
            Ignored.
        failure_probability : float, default=None
            None bounds the draw that `random_state` gives. A number in (0, 1) bounds all draws
            but a share of at most this probability, for planning and for the accounting of
            Chaudhuri and Vinterbo.

        Returns
        -------
        Certificate
            With v the volume of a cell and N the least sum of the clipped noisy counts,
            ``training = min(2, 4 / N) / v`` and ``span = 2 / v``.

        Raises
        ------
        CertificateError
            If no certificate exists for the score.
        """
        self._check_parameters()
        if not isinstance(score, IntegratedSquaredErrorScore):
            raise CertificateError(
                f"No certificate exists for {type(self).__name__} with {type(score).__name__}; "
                "use dpselect.metrics.IntegratedSquaredErrorScore()."
            )
        listed = columns_listed(self.bounds, self.bin_width)
        cells = Cells.tile(self.bounds, self.bin_width, listed or n_features)
        if failure_probability is None:
            noise = self._draw(as_generator(self.random_state), cells.shape).ravel()
            total = least_total(noise, n_samples)
        else:
            total = max(0.0, n_samples + self._least_noise(cells.size, failure_probability))
        return Certificate(
            training=float(training_stability(total) / cells.volume), span=2.0 / cells.volume
        )

    def _draw(self, generator, shape):
        if self.epsilon == math.inf:
            return np.zeros(shape)
        if self.noise == "laplace":
            return lattice_noise(generator, shape, SENSITIVITY / float(self.epsilon), self._step())
        # rounded up, so that the last bit does not exceed the stated loss
        ratio = np.nextafter(math.exp(-float(self.epsilon) / SENSITIVITY), 1.0)
        return two_sided_geometric(generator, shape, ratio)

    def _step(self):
        """Return the step of the grid of the noise, of which counts are multiples."""
        if self.noise == "geometric":
            return 1.0
        return grid_step(SENSITIVITY / float(self.epsilon), unit=1.0)

    def _least_noise(self, n_cells, failure_probability):
        """Return a number that the sum of all noise falls below with at most this probability."""
        check_number(
            "failure_probability", failure_probability, high=1.0,
            why="it is the probability with which the bound may fail",
            instead="write a number between 0 and 1, or None for the draw that was made",
        )
        # the sum is symmetric about 0
        if failure_probability >= 0.5 or self.epsilon == math.inf:
            return 0.0
        # Chernoff: for every theta in (0, limit), with M the moment generating function of one
        # variable, P(sum <= -t) <= M(theta)^cells exp(-theta t); so any grid of theta will do
        share = expit(np.linspace(-30.0, 30.0, 3001))
        # low-precision numbers would weaken the noise
        limit = float(self.epsilon) / SENSITIVITY
        if self.noise == "laplace":
            # on a grid it is smaller, since sinh(st) <= s sinh(t) for s <= 1
            log_m = -np.log1p(-share) - np.log1p(share)
        else:
            log_m = (
                2 * np.log(-np.expm1(-limit))
                - np.log(-np.expm1(-limit * (1 - share)))
                - np.log(-np.expm1(-limit * (1 + share)))
            )
        bounds = (n_cells * log_m - math.log(failure_probability)) / (limit * share)
        return -float(bounds.min())

    def _check_parameters(self):
        check_epsilon(self.epsilon)
        check_choice("noise", self.noise, ("laplace", "geometric"), why="only these have a proof")
        check_random_state(self.random_state)
        tiling(self.bounds, self.bin_width)


def least_total(noise, n_samples):
    """Return the least sum of the clipped noisy counts, over all sets of n records.

    Parameters
    ----------
    noise : ndarray of shape (..., n_cells)
        What is added to the counts.
    n_samples : int
        n.

    Returns
    -------
    ndarray of shape (...)
    """
    # clipping only raises a count, and a count never lies below its noise
    return np.maximum(np.maximum(noise, 0.0).sum(axis=-1), n_samples + noise.sum(axis=-1))


def training_stability(total):
    """Return v times the bound on the change of the score: min(2, 4 / total)."""
    return 4.0 / np.maximum(total, 2.0)
