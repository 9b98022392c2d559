"""Plot the terms of a model of a table: a curve for each number, a point for each category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ..linear_model import DPPoissonRegressor
from ..linear_model.coefficient_intervals import CoefficientIntervals
from ..preprocessing import TableEncoder
from ..preprocessing.terms import CategoryTerm, FourierTerm, PairTerm, Term
from ..utils.parameters import as_fitted
from ..utils.type_aliases import Array, Estimator, FloatArray
from ..utils.validation import imported_pandas
from .display import imported_pyplot
from .term_bands import Band, errors_of_intervals, noise_of_fit
from .term_pictures import N_POINTS_OF_A_PAIR, draw, height

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

N_POINTS = 101  # between bounds; odd, to include the middle
WIDTH = 3.4  # inches


@dataclass(frozen=True, eq=False, repr=False)
class DrawnTerm:
    """One term of a model, at values of its columns.

    Attributes
    ----------
    term : Term
        Of the encoder.
    values : list of ndarray of shape (m,)
        For each column: numbers (and nan) or categories (and None); of a pair, all combinations.
    effect : ndarray of shape (m,)
        What the term adds to the prediction there.
    band : Band, default=None
        Its `low` and `high` end, and the standard deviation `noise` of the errors, or an upper bound on
        it; each of shape (m,). None if nothing is known.
    """

    term: Term
    values: list[Array]
    effect: FloatArray
    band: Band | None = None

    @property
    def noise(self) -> FloatArray | None:
        """ndarray of shape (m,) : Standard deviation of the errors, or a bound on that of the noise."""
        return None if self.band is None else self.band.noise

    @property
    def name(self) -> Any:
        """object : The column, or the tuple of two."""
        names = _names(self.term)
        return names[0] if len(names) == 1 else names

    @property
    def may_be_noise(self) -> bool:
        """bool : Whether the law of the errors is known, and their band contains 0 everywhere.

        False where the band is only an upper bound: the noise may be far less than that.
        """
        return self.band is not None and not self.band.is_bound and self._contains_zero

    @property
    def is_unknown(self) -> bool:
        """bool : Whether nothing can be told: no interval, or 0 within an upper bound everywhere."""
        if self.band is None:
            return False
        return bool(np.isnan(self.band.low).any()) or (self.band.is_bound and self._contains_zero)

    @property
    def _contains_zero(self):
        return bool(((self.band.low <= 0) & (0 <= self.band.high)).all())


@dataclass(kw_only=True, eq=False, repr=False)
class TermsDisplay:
    """The contribution of each column to the predictions of a linear model of a table.

    Behind a :class:`~dpselect.preprocessing.TableEncoder` a linear model is a sum of terms: a curve for
    each number, a level for each category, an image for each pair. They *are* the model: a prediction is
    `offset` and one value of each, but for rows that are longer than `data_norm`, whose terms are all
    scaled down by one factor. Each term is 0 on average over numbers that lie evenly between their
    bounds, or over its levels. A picture reads the released model and public numbers: it costs nothing.

    Make one with :meth:`from_estimator`.

    Read more in :doc:`/intervals`.

    Parameters
    ----------
    terms : list of DrawnTerm
        Each has a `name`, `values`, `effect`, `band` and `noise`.
    offset : float
        What the terms are added to.
    unit : str
        Of the effects, such as "log odds of 1"; "linear prediction of 1" with a largest derivative L
        below 1, where log odds change by as much or less, and by no less than L times as much.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, shape (n_terms,)
    figure_ : matplotlib Figure

    See Also
    --------
    sklearn.inspection.PartialDependenceDisplay : For models without terms; it averages over records,
        which is a release of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPLogisticRegression, TermsDisplay
    >>> from dpselect.preprocessing import tabular_pipeline
    >>> rng = np.random.default_rng(0)
    >>> age, smokes = rng.integers(18, 100, 5000), rng.choice(["yes", "no"], 5000)
    >>> X, y = np.array([age, smokes], dtype=object).T, (age > 60) | (smokes == "yes")
    >>> schema = {"age": (18, 100), "smokes": ["yes", "no"]}
    >>> model = tabular_pipeline(schema, DPLogisticRegression(classes=[False, True])).fit(X, y)
    >>> display = TermsDisplay.from_estimator(model)
    >>> years, smokes = display.terms
    >>> young, old = years.effect[[25, 75]]
    >>> bool(young < 0 < old)
    True
    >>> print(smokes.values[0], smokes.effect.round() > 0)
    ['yes' 'no'] [ True False]
    """

    terms: list[DrawnTerm]
    offset: float
    unit: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        columns: npt.ArrayLike | None = None,
        *,
        target: Any = None,
        n_samples: int | None = None,
        intervals: CoefficientIntervals | None = None,
    ) -> Self:
        """Read a fitted model.

        Parameters
        ----------
        estimator : Pipeline
            Fitted, with a TableEncoder before a linear model, such as
            :func:`~dpselect.preprocessing.tabular_pipeline` makes; of a search, its `best_estimator_`.
        columns : list of str or of (str, str), default=None
            Columns, and pairs of them, whose terms are shown; None for all. Random Fourier features
            have no picture.
        target : object, default=None
            The class that effects speak for. None is the second of two classes.
        n_samples : int, default=None
            Records that the model was trained on, or persons if it was fitted with `groups`. With it
            there are bands for the noise, not for sampling. Of :class:`~dpselect.DPRidge`, and of every
            model with noise in the result, the law of the noise is known, and about 95 % of the effects
            are within their band of their mean over the noise. Of objective perturbation only an upper
            bound is known, often a hundred times too wide: how much noise moves a model depends on its
            records. Give `intervals` for bands that are as wide as the errors are.
        intervals : CoefficientIntervals, default=None
            Of this model, by :func:`~dpselect.coef_interval`, in place of `n_samples`. Bands are then
            95 % intervals that cover sampling, too. Their centres are corrected for what the noise
            added to the penalty. Intervals from invented records cost nothing, and show how wide those
            of similar real records would be.

        Returns
        -------
        TermsDisplay

        Raises
        ------
        TypeError
            If it is no such Pipeline.
        ValueError
            If a column has no term, or the target is no class; if both `n_samples` and `intervals` are
            given, or intervals of another model; or if `n_samples` is given and no bound is known on
            the noise, as for objective perturbation of :class:`~dpselect.DPRidge`, or for models whose
            noise had a part in their choice (accuracy first, random stopping).
        """
        encoder, model = _parts(estimator)
        chosen = _chosen(encoder.terms_, columns)
        sign, row, target = _direction(model, target)
        coef, intercept = np.atleast_2d(model.coef_)[row], np.atleast_1d(model.intercept_)[row]
        errors = _errors(model, row, n_samples, intervals)
        offset = float(intercept)
        for term in encoder.terms_:
            offset += float(_centre(term) @ coef[term.outputs])
        drawn = []
        for term in chosen:
            values = term.values(N_POINTS if len(term.parts) == 1 else N_POINTS_OF_A_PAIR)
            features = term.at(*values) - _centre(term)
            effect = sign * (features @ coef[term.outputs])
            band = None if errors is None else errors.of(term.outputs).band(features, effect, sign)
            drawn.append(DrawnTerm(term, values, effect, band))
        return cls(terms=drawn, offset=sign * offset, unit=_unit(model, target))

    def to_frame(self) -> DataFrame:
        """Return all values.

        Returns
        -------
        pandas.DataFrame
            With the columns "term", "value" (of the column; of a pair, a tuple) and "effect"; if there
            are bands, "noise", "low" and "high".

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = imported_pandas("to_frame", "read `terms`")
        frames = []
        for drawn in self.terms:
            pairs = len(drawn.values) > 1
            values = list(zip(*drawn.values)) if pairs else drawn.values[0].tolist()
            columns = {"term": [drawn.name] * len(values), "value": values, "effect": drawn.effect}
            if drawn.band is not None:
                columns["noise"] = drawn.noise
                columns |= {"low": drawn.band.low, "high": drawn.band.high}
            frames.append(
                pd.DataFrame(
                    {
                        name: pd.Series(column, dtype=object if name in ("term", "value") else float)
                        for name, column in columns.items()
                    }
                )
            )
        return pd.concat(frames, ignore_index=True)

    def plot(self, ax: npt.ArrayLike | Axes | None = None, *, n_cols: int = 3) -> Self:
        """Draw all terms on one scale.

        Parameters
        ----------
        ax : array of matplotlib Axes, default=None
            One for each term. None makes a new figure.
        n_cols : int, default=3
            Pictures side by side in a new figure.

        Returns
        -------
        self : object

        Raises
        ------
        ImportError
            If matplotlib is not installed: ``pip install dpselect[plot]``.
        ValueError
            If there is another number of axes than of terms.
        """
        pyplot = imported_pyplot()
        axes = self._new_axes(pyplot, n_cols) if ax is None else np.ravel(np.array(ax, dtype=object))
        if len(axes) != len(self.terms):
            raise ValueError(
                f"ax has {len(axes)} axes, and each of the {len(self.terms)} terms needs one; write "
                "None for a new figure."
            )
        limit = self._limit()
        for axis, drawn in zip(axes, self.terms):
            draw(axis, drawn, limit, self.unit)
        # the figure, also for axes in a subfigure
        self.axes_, self.figure_ = axes, axes[0].figure.figure
        return self

    def _new_axes(self, pyplot, n_cols):
        n_cols = min(n_cols, len(self.terms))
        rows = [self.terms[i : i + n_cols] for i in range(0, len(self.terms), n_cols)]
        heights = [max(map(height, row)) for row in rows]
        figure = pyplot.figure(layout="constrained", figsize=(WIDTH * n_cols, sum(heights)))
        # one subfigure per row, so that long names in one row do not move the others
        parts = figure.subfigures(len(rows), squeeze=False, height_ratios=heights)[:, 0]
        axes = [part.subplots(1, n_cols, squeeze=False)[0] for part in parts]
        for axis in axes[-1][len(rows[-1]) :]:
            axis.set_axis_off()
        return np.concatenate(axes)[: len(self.terms)]

    def _limit(self):
        """Return the end of the scale; bands may be cut off so that terms are visible."""
        largest = max(abs(drawn.effect).max() for drawn in self.terms) or 1.0
        ends = [
            np.nanmax(np.abs([drawn.effect, *drawn.band[:2]]))
            for drawn in self.terms
            if drawn.band is not None
        ]
        return 1.1 * min(max(ends, default=largest), 2 * largest)


def _parts(estimator):
    """Return the encoder and the model of a fitted Pipeline."""
    steps = [step for _, step in getattr(estimator, "steps", ())]
    if len(steps) < 2 or not isinstance(steps[-2], TableEncoder) or not hasattr(steps[-1], "coef_"):
        raise TypeError(
            f"estimator ({type(estimator).__name__}) is no fitted Pipeline of a TableEncoder and a "
            "linear model, so it has no terms; write tabular_pipeline(schema, model).fit(X, y), or the "
            "best_estimator_ of a search."
        )
    check_is_fitted(steps[-1])
    return steps[-2], as_fitted(steps[-1])


def _names(term):
    """Return the names of what is drawn, of which several may come from one column of dates."""
    return tuple(part.name for part in term.parts)


def _chosen(terms, columns):
    """Return the terms of some columns, or all that can be drawn."""
    known = {_names(term): term for term in terms if not isinstance(term, FourierTerm)}
    if columns is None:
        return list(known.values())
    asked = [tuple(name) if isinstance(name, (list, tuple)) else (name,) for name in columns]
    lacking = [name for name in asked if name not in known]
    if lacking or not asked:
        raise ValueError(
            f"columns={columns!r} are not all columns, or pairs, of the encoder that have a term; write "
            f"some of {[name[0] if len(name) == 1 else name for name in known]}."
        )
    return [known[name] for name in asked]


def _direction(model, target):
    """Return the sign and the row of the coefficients of a class, and the class."""
    classes = np.asarray(getattr(model, "classes_", [])).tolist()
    if not classes and target is None:
        return 1, 0, None
    if target is None and len(classes) == 2:
        return 1, 0, classes[1]
    if target not in classes:
        raise ValueError(
            f"target={target!r} is none of the classes {classes} of this {type(model).__name__}; "
            f"{'write one of them' if classes else 'leave it out'}."
        )
    place = classes.index(target)
    return (2 * place - 1, 0, target) if len(classes) == 2 else (1, place, target)


def _errors(model, row, n_samples, intervals):
    """Return what is known of the errors of the coefficients, or None."""
    if intervals is None:
        return None if n_samples is None else noise_of_fit(model, n_samples)
    if n_samples is not None:
        raise ValueError(
            f"n_samples={n_samples!r} asks for bands of the noise, and intervals for those of all "
            "errors, and a picture has one of them; leave n_samples out."
        )
    if not isinstance(intervals, CoefficientIntervals):
        raise TypeError(
            f"intervals ({type(intervals).__name__}) are no CoefficientIntervals, so nothing is "
            "known of the errors; write coef_interval(estimator, ...)."
        )
    return errors_of_intervals(intervals, np.atleast_2d(model.coef_), row)


def _centre(term):
    """Return the mean of the features over the levels; for numbers it is 0."""
    if isinstance(term, CategoryTerm):
        return term.at(term.cells()).mean(axis=0)
    if isinstance(term, PairTerm):
        return np.outer(*map(_centre, term.factors)).ravel() * term.amplitude
    return np.zeros(len(term.names))


def _unit(model, target):
    if hasattr(model, "classes_"):
        said = "log odds" if hasattr(model, "predict_proba") else "decision value"
        # with a capped slope, log odds are a nonlinear function of the sum of the terms
        bent = getattr(model, "largest_derivative", 1.0) < 1
        return f"{'linear prediction' if bent else said} of {target}"
    return "log of the count" if isinstance(model, DPPoissonRegressor) else "prediction"
