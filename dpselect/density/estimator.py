"""Differentially private density estimation: a histogram over public cells.

Chaudhuri and Vinterbo 2013, section 6.3. The page "Histogram density" of the documentation
has statement and proof, and what differs from theirs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state as numpy_random_state
from sklearn.utils.validation import check_is_fitted

from ..base.estimator import PrivateDensity
from ..ledger import PrivacyLedger
from ..noise import release
from ..noise.generators import RandomState
from ..records.public_shape import PublicShape
from ..records.records import (
    Weighted,
    check_weights_are_bounded,
    fractions_of_largest,
    numeric_rows,
    split_weights,
)
from ..rows import block_map, block_sum
from ..utils.type_aliases import FloatArray, MatrixLike
from ..utils.validation import check_number, imported_pandas, one_of, size, unless
from .accuracy import HistogramAccuracy
from .cells import Cells, cell_masses, tiling
from .count_noise import HistogramNoise
from .split_scores import density_split_scores

if TYPE_CHECKING:
    from pandas import DataFrame


class DPHistogramDensity(PrivateDensity):
    """Histogram density, released with epsilon-differential privacy.

    Counts the records in equal cells that tile the bounds, adds noise to each count, sets
    negative ones to 0 and divides by their sum and the volume of a cell. If no positive count
    is left, the density is uniform.

    Neighbouring data sets differ in one record. Public are the number of records, the
    columns, the cells, and every parameter.

    Read more in :doc:`/density`.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of the fit, greater than 0; ``inf`` is the exact histogram.
    bin_width : float or array-like of shape (n_features,), default=0.1
        Width of the cells along all columns, or along each, in the units of the data. It
        must divide the range of the bounds.
    bounds : (float, float) or array-like of shape (n_features, 2), default=None
        Lower and upper bound of all columns, or of each. They must be given, from knowledge of the
        field and never from the records. A record outside them counts in the nearest cell.
    noise : {"laplace", "discrete_laplace"}, default="laplace"
        Laplace noise is that of Chaudhuri and Vinterbo, on a fine grid that holds the integers:
        the last bits tell nothing. Discrete Laplace noise is made of integers, and its variance is
        smaller, by 2 % with epsilon 1 and 17 % with 3. With either, what is released are shares; times
        the number of records and rounded, they are whole numbers.
    max_sample_weight : float, default=None
        To which the weights of records are clipped, if `fit` is given a `sample_weight`, which None
        lets it refuse. The noise is as large as that of so many records of weight 1. Searches take no
        weights of a density.
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
    >>> density = DPHistogramDensity(epsilon=1.0, bin_width=0.1, bounds=(0, 1)).fit(X)
    >>> density.privacy_.epsilon
    1.0
    >>> common, rare = density.score_samples([[0.15], [0.85]])
    >>> bool(common > rare)
    True
    """

    default_scoring = "integrated_squared_error"
    reads = {"lazily": True}
    reads_once = True
    ruled_param = "bin_width"
    instead_of_weights = "search without weights, and fit the chosen bin_width with them"
    # an evaluation counts records by the densities of these cells
    has_cells = True
    parameter_checks = {
        "noise": one_of("laplace", "discrete_laplace", why="only these have a proof"),
        "max_sample_weight": unless(
            None,
            size(
                why="counts are sums of weights as fractions of it",
                instead="write a positive number that few weights exceed, or None to refuse weights",
            ),
        ),
    }
    takes_groups = True
    split_scores = staticmethod(density_split_scores)

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bin_width: npt.ArrayLike = 0.1,
        bounds: npt.ArrayLike | None = None,
        noise: Literal["laplace", "discrete_laplace"] = "laplace",
        max_sample_weight: float | None = None,
        ledger: PrivacyLedger | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.bin_width = bin_width
        self.bounds = bounds
        self.noise = noise
        self.max_sample_weight = max_sample_weight
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self):
        super()._check_parameters()
        tiling(self.bounds, self.bin_width)

    def fit(
        self,
        X: MatrixLike,
        y: Any = None,
        *,
        sample_weight: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Count the records, and release the histogram.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each record counts, 0 or more; clipped to `max_sample_weight`. It must follow from
            the record and from public numbers. None counts each once.
        groups : array-like of shape (n_samples,), default=None
            The id of the person whose row it is. Neighbours then differ in all rows of one person, and a
            person counts as one record, the mean of their rows. None if each row is a person.
        **fit_params : dict
            Refused.

        Returns
        -------
        self : object

        Raises
        ------
        BudgetExceededError
            If the ledger has less left; no record is read.
        TypeError, ValueError
            If a parameter is out of range, or X, `sample_weight` or `groups` is malformed.

        Examples
        --------
        >>> import numpy as np
        >>> from dpselect import DPHistogramDensity
        >>> age, weight = np.array([[25.0], [35.0], [70.0]]), [1.0, 1.0, 2.0]
        >>> density = DPHistogramDensity(
        ...     float("inf"), bounds=(0, 100), bin_width=50, max_sample_weight=2
        ... )
        >>> density.fit(age, sample_weight=weight).to_frame()["share"].tolist()
        [0.5, 0.5]
        """
        if sample_weight is not None:
            self._check_takes_weights()
            y = Weighted(None, sample_weight)
        return super().fit(X, y, groups=groups, **fit_params)

    def _check_takes_weights(self):
        check_weights_are_bounded(type(self).__name__, self.max_sample_weight, "a count")
        self._refuse_integers("sample_weight puts parts of a record into a cell")

    def check_takes_groups(self) -> None:
        """Refuse rows of persons with integer noise, which protects whole records only.

        Raises
        ------
        ValueError
        """
        self._refuse_integers("groups put parts of a person into several cells")

    def _refuse_integers(self, why):
        if self.noise == "discrete_laplace":
            raise ValueError(
                f"{why}, and noise='discrete_laplace' hides integers; write noise='laplace'."
            )

    def _check_records(self, X, y):
        weight = split_weights(y)[1]
        records = super()._check_records(X, None)
        if weight is None:
            return records
        self._check_takes_weights()
        weight = fractions_of_largest(weight, records.X, float(self.max_sample_weight))
        return replace(records, weight=weight)

    def _what(self):
        return f"histogram with {self.noise} noise"

    def _calibration(self, shape, epsilon):
        # a search may ask before X is known; then use the listed columns
        cells = Cells.tile(self.bounds, self.bin_width, shape.n_features)
        return HistogramNoise(type(self), cells, self.noise, shape, epsilon)

    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        return self._calibration(PublicShape(1, n_features), epsilon).standard_noise(generator)

    def _release(self, records, calibration, noise):
        cells = calibration.cells
        counts = cells.counts(records, calibration.step)
        noisy = release(counts, noise.ravel(), calibration.step)
        return cells.density(cell_masses(noisy))

    if not TYPE_CHECKING:  # which would take any attribute for one of this class

        def __getattr__(self, name):
            if name == "to_sklearn":
                raise AttributeError(
                    f"{type(self).__name__} has no to_sklearn, because scikit-learn has no histograms; "
                    "write to_frame(), a table of all that was released, or save the model with skops."
                )
            return super().__getattribute__(name)  # the usual error

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
        """Draw rows from the released density, at no further privacy loss.

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
            "n_samples",
            n_samples,
            integer=True,
            why="it counts rows",
            instead="write an integer of 1 or more",
        )
        rng = numpy_random_state(random_state)
        masses = self.density_.ravel() / self.density_.sum()
        chosen = np.unravel_index(rng.choice(masses.size, size=n_samples, p=masses), self.density_.shape)
        rows = np.empty((n_samples, len(self.bin_edges_)))
        for j, (edges, bins) in enumerate(zip(self.bin_edges_, chosen)):
            position = rng.uniform(size=n_samples)
            rows[:, j] = (1 - position) * edges[bins] + position * edges[bins + 1]
        return rows

    def to_frame(self) -> DataFrame:
        """Return the released cells as a table that can be published.

        Returns
        -------
        DataFrame of shape (n_cells, 2 * n_features + 1)
            A row for each cell, the last column of the data fastest: "<name> from" and "<name> to" of
            each column, in the units of the data, and "share" of all records in the cell, in [0, 1].
            The shares add up to 1. Of data without names the columns are "column 0" and so on.

        Raises
        ------
        ImportError
            If pandas is not installed.

        Notes
        -----
        It is computed from the released density alone, so it costs nothing. Times the number of
        records, which is public, a share is an estimate of a count.

        Examples
        --------
        >>> import numpy as np
        >>> from dpselect import DPHistogramDensity
        >>> ages = np.random.default_rng(0).integers(18, 91, size=(10_000, 1))
        >>> table = DPHistogramDensity(bounds=(18, 90), bin_width=24).fit(ages).to_frame()
        >>> table[["column 0 from", "column 0 to"]].values.tolist()
        [[18.0, 42.0], [42.0, 66.0], [66.0, 90.0]]
        >>> float(table["share"].sum().round(9))
        1.0
        """
        check_is_fitted(self)
        pandas = imported_pandas("to_frame", "read `density_` and `bin_edges_`")
        names = getattr(self, "feature_names_in_", [f"column {j}" for j in range(self.density_.ndim)])
        cells = np.indices(self.density_.shape).reshape(self.density_.ndim, -1)
        columns: dict[str, FloatArray] = {}
        for name, edges, bins in zip(names, self.bin_edges_, cells):
            columns |= {f"{name} from": edges[bins], f"{name} to": edges[bins + 1]}
        masses = self.density_.ravel() * Cells(tuple(self.bin_edges_)).volume
        return pandas.DataFrame(columns | {"share": masses})

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
        """float : Order of the attainable gain over the uniform density, 1 / volume."""
        limits, _ = tiling(self.bounds, self.bin_width)
        return float(1 / np.prod([high - low for low, high in limits]))

    def accuracy_form(self) -> HistogramAccuracy:
        """Return the AccuracyForm of this estimator, for accuracy first.

        Returns
        -------
        HistogramAccuracy
        """
        self._check_parameters()
        return HistogramAccuracy(self)
