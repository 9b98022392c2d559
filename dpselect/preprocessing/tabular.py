"""A table encoder and a private model in one Pipeline, with the model's bounds from the encoder."""

import math
from collections.abc import Mapping
from contextlib import contextmanager
from functools import partial, wraps
from inspect import signature
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.metaestimators import available_if

from ..accounting.gaussian import gaussian_mu
from ..accounting.joint import jointly
from ..base.capabilities import require_weights
from ..base.estimator import Trial
from ..base.fit_warnings import warn_if_seeded
from ..config import get_config as own_config
from ..exceptions import CertificateError
from ..ledger import spending
from ..noise import all_finite, as_generator, root_stream
from ..records.persons import Persons, adjacency_of
from ..records.public_shape import PublicShape, n_problems
from ..records.records import Weighted
from ..records.training import remember
from ..rows import as_lazy, column_names, is_dask, is_lazy, n_rows, read_by_block
from ..utils.atomic import all_or_nothing
from ..utils.parameters import keep_params
from ..utils.type_aliases import Estimator
from ..utils.validation import check_epsilon, refuse_fit_params
from .foreign_columns import refuse_foreign_columns
from .learned_ranges import narrowed
from .ranges_of_a_fit import Shares, ranges_to_learn
from .table_encoder import TableEncoder
from .table_form import list_columns
from .table_terms import TableTerms

# parameters that a pipeline sets in its model, and in its encoder
BOUNDS, TOLD = ("data_norm", "data_norm_l1"), ("n_epsilon", "n_mu")


def known_share(model):
    """Return the share of one of two classes that a model is given as its `base_rate`, or None."""
    classifier = isinstance(model, BaseEstimator) and is_classifier(model)
    rate = getattr(model, "base_rate", None) if classifier else None
    if isinstance(rate, Mapping) and len(rate) == 2:
        second = np.unique(np.asarray(list(rate))).tolist()[1]
        rate = rate.get(second)
    return float(rate) if isinstance(rate, Real) and 0 < rate < 1 else None


def write_share(pipeline):
    """Write the share of a class that the model is told into the encoder."""
    encoder, model = [None, *(step for _, step in pipeline.steps)][-2:]
    if isinstance(encoder, TableEncoder) and (share := known_share(model)) is not None:
        encoder.set_params(class_share=share)


PREDICTION = """Return `{0}` of the fitted steps; encoded rows are not stored.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        *args, **params : object
            As for :meth:`sklearn.pipeline.Pipeline.{0}`.

        Returns
        -------
        ndarray of shape (n_samples, ...), or float
        """


def _on_blocks(name):
    """Return a method of Pipeline that encodes long tables block by block, and stores no rows."""
    method = getattr(Pipeline, name)

    def available(self):
        return getattr(super(TabularPipeline, self), name) is not None

    @wraps(method)
    def on_blocks(self, X, *args, **params):
        rows = self._by_block(X, cheap=True) if hasattr(self.steps[-2][1], "terms_") else X
        return getattr(super(TabularPipeline, self), name)(rows, *args, **params)

    on_blocks.__doc__ = PREDICTION.format(name)
    return available_if(available)(on_blocks)


class TabularPipeline(Pipeline):
    """A Pipeline of a :class:`TableEncoder` and a private model, with bounds from the schema.

    `fit`, and a search, write the number of records times epsilon into `n_epsilon` of the encoder, and
    that times mu into `n_mu`, by which its "auto" and "first" go, a `base_rate` of a classifier that is
    a number into `class_share`, and the encoder's :meth:`~TableEncoder.typical_norm` into `data_norm` of
    the model, and into `data_norm_l1` if it has one. These are functions of public
    numbers and the encoder's parameters alone, so a grid may vary the latter. Epsilon is that with
    which the model will be trained: what a search leaves for it, beside the choice (of a fit with ranges
    that are learned, the whole). An
    :class:`~dpselect.AccuracyFirstSearchCV` does not know it, and writes None.
    :func:`tabular_pipeline` makes one.

    The steps and the guarantee are those of a Pipeline: the encoder learns nothing, and the fitted model
    states in `privacy_` what was spent.

    Parameters
    ----------
    steps : list of (str, estimator)
        The last one but one is a TableEncoder.
    transform_input : list of str, default=None
    memory : str or object, default=None
    verbose : bool, default=False
        As for :class:`sklearn.pipeline.Pipeline`.

    Examples
    --------
    >>> from dpselect import DPLogisticRegression
    >>> from dpselect.preprocessing import tabular_pipeline
    >>> pipeline = tabular_pipeline({"age": (18, 100)}, DPLogisticRegression(classes=[0, 1]))
    >>> pipeline.set_params(encoder__expansion=2).bound()["model"].data_norm
    0.866...
    """

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the steps: ``encoder__expansion`` and so on, ``model__alpha``.

        Parameters
        ----------
        **params : dict
            As for :meth:`sklearn.pipeline.Pipeline.set_params`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a name says no step, or none of its parameters.
        """
        known = self.get_params()
        for name in () if "steps" in params else params:
            if name.split("__")[0] not in known:
                raise ValueError(_no_step(name, [step for step, _ in self.steps], known))
        return super().set_params(**params)

    def bound(self, n_samples: int | None = None, epsilon: float | None = None) -> Self:
        """Set the public parameters of the encoder, and the model's norms by the encoder.

        Parameters
        ----------
        n_samples : int, default=None
            Number of records; None if it is not known yet.
        epsilon : float, default=None
            With which the model will be trained; None is the model's own.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError
            If there is no TableEncoder before the last step.
        """
        encoder = self.steps[-2][1] if len(self.steps) > 1 else None
        if not isinstance(encoder, TableEncoder):
            raise TypeError(
                "The last step but one of a TabularPipeline is no TableEncoder, so nothing is known of "
                "the length of rows; write tabular_pipeline(schema, model), or a Pipeline whose model "
                "has a data_norm of your own."
            )
        model = self.steps[-1][1]
        given = model.get_params(deep=False) if isinstance(model, BaseEstimator) else {}
        epsilon = given.get("epsilon") if epsilon is None else epsilon
        told = dict.fromkeys(TOLD)
        if n_samples and epsilon is not None:
            epsilon, delta, K = check_epsilon(epsilon), given.get("delta", 0.0), n_problems(model)
            told["n_epsilon"] = n_samples * epsilon / K
            if delta and epsilon < math.inf:
                told["n_mu"] = n_samples * gaussian_mu(epsilon, delta) / math.sqrt(K)
        encoder.set_params(**told)
        norms = dict(zip(BOUNDS, encoder.typical_norms()))
        # keep "auto": it is learned privately in fit
        free = {name for name, value in given.items() if not isinstance(value, str)}
        model.set_params(**{name: norm for name, norm in norms.items() if name in free})
        return self

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Set the public parameters of encoder and model, and fit the steps one after the other.

        Encoded records are not stored, unless they are few: each pass of the model encodes them anew,
        block by block. With random features (`n_fourier`), which take longer, they are stored if they
        fit into scikit-learn's ``working_memory`` and the model makes more than one pass.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            With the columns of the encoder's schema.
        y : array-like of shape (n_samples,), default=None
        **params : dict
            `groups`, the id of the person whose row it is, of shape (n_samples,): the model then
            protects all rows of a person. `sample_weight`, how often each record counts, of shape
            (n_samples,), of a model with a `max_sample_weight`. All else as for
            :meth:`sklearn.pipeline.Pipeline.fit`.

        Returns
        -------
        self : object
        """
        params = self._by_step(params)
        groups = self._params_of_model(params).get("groups")
        rows = self._without_graph(X)
        self._refuse_foreign_columns(rows)
        write_share(self)
        # with persons, the number of rows is not public
        persons = None if groups is None else Persons.of(groups, rows)
        n = n_rows(rows) if persons is None else persons.n
        self.bound(n)
        release = ranges_to_learn(self)
        if release is not None:
            return self._fit_within_ranges(release, X, y, n, persons, params)
        super().fit(self._by_block(rows), y, **params)
        if rows is not X:
            remember(self.steps[-2][1], X)
        return self

    def _fit_within_ranges(self, release, X, y, n, persons, params):
        """Learn ranges of the numbers, and fit the steps with what is left of the budget."""
        encoder, model = (step for _, step in self.steps)
        learns = check_epsilon(model.epsilon) < math.inf
        if learns and is_classifier(model) and model.classes is None:
            raise ValueError(
                "ranges='auto' divides epsilon by public numbers, and classes=None learns the labels "
                "from y; write classes=[...] in the model, all labels that a record may have."
            )
        if persons is not None:
            model.check_takes_groups()
        d = TableTerms.of(encoder, encoder.public_schema()).terms[-1].outputs.stop
        shape = PublicShape(n, d, n_problems(model), persons is not None)
        shares = Shares.of(release, model, shape, adjacency_of(persons is not None), type(self).__name__)
        if shares is None:
            with _set_meanwhile(encoder, ranges=None):
                return super().fit(self._by_block(X), y, **params)
        with all_or_nothing(encoder), all_or_nothing(model), spending(model, shares.total) as charge:
            # before noise is drawn: what is wrong with the records is refused, and costs nothing
            rows = release.rows(encoder, partial(_encoded, X))
            _check_records(model, rows, y, **self._params_of_model(params))
            sums = release.summed(rows, persons)
            generator = as_generator(root_stream(model.random_state).child("first", "ranges"))
            ranges = all_finite(shares.release.learn(sums, shares.ranges.epsilon, generator))
            schema = narrowed(encoder.public_schema(), ranges)
            left = {name: getattr(shares.model, name) for name in ("epsilon", "delta")}
            left = {name: value for name, value in left.items() if name in model.get_params(deep=False)}
            with _set_meanwhile(encoder, schema=schema, ranges=None), _set_meanwhile(model, **left):
                super().fit(self._by_block(X), y, **params)
            keep_params(encoder)  # what is public is the schema that was given
            encoder.privacy_ = shares.ranges
            loss = jointly([shares.ranges, model.privacy_], label=shares.total.label)
            if loss.epsilon > shares.total.epsilon or loss.delta > shares.total.delta:
                raise CertificateError(
                    f"{type(model).__name__} states more than was planned for the same public "
                    "numbers, so nothing is released and the reservation counts in full; let _stated() "
                    "follow from these alone."
                )
            charge.commit(loss)
        return self

    def to_sklearn(self) -> Pipeline:
        """Return an equal Pipeline of scikit-learn alone: see :func:`dpselect.export.to_sklearn`.

        Returns
        -------
        sklearn.pipeline.Pipeline
        """
        # a local import, because that module's check imports this class
        from .plain_pipelines import to_sklearn

        return to_sklearn(Pipeline(self.steps))

    predict = _on_blocks("predict")
    predict_proba = _on_blocks("predict_proba")
    predict_log_proba = _on_blocks("predict_log_proba")
    decision_function = _on_blocks("decision_function")
    score = _on_blocks("score")

    if not TYPE_CHECKING:  # which would take any attribute for one of this class

        def __getattr__(self, name):
            if name == "privacy_":
                raise AttributeError(
                    "A Pipeline has no privacy_ of its own, because its steps state what each of them "
                    "spends; write dpselect.privacy_of(pipeline), or pipeline[-1].privacy_ of the model."
                )
            return super().__getattribute__(name)  # the usual error

    def _refuse_foreign_columns(self, X):
        (_, encoder), X = self.steps[0], as_lazy(X)
        # what else is wrong, the encoder says
        if isinstance(encoder, TableEncoder) and not is_lazy(X) and len(np.shape(X)) == 2:
            columns = list_columns(X)
            known = encoder.declared(column_names(X), len(columns))
            if known is not None:
                refuse_foreign_columns(columns, known)

    @property
    def _reads_lazily(self):
        """bool : Whether there are an encoder and a model that reads lazy rows, and nothing else."""
        reads = getattr(self.steps[-1][1], "reads", {}).get("lazily", False)
        return len(self.steps) == 2 and self.memory is None and reads

    def _without_graph(self, X):
        """Return a Dask dataframe as lazy rows, so that its graph is made once; all else as it is."""
        if not (is_dask(X) and hasattr(X, "columns") and self._reads_lazily):
            return X
        import pandas as pd

        # dataframe output is made of a Dask array
        encoder, none = clone(self.steps[0][1]), pd.DataFrame(columns=list(X.columns))
        try:
            plain = type(encoder.fit_transform(none)) is np.ndarray
        except (TypeError, ValueError):  # other columns than the schema's: the fit says it
            return X
        return as_lazy(X) if plain else X

    def _by_block(self, X, cheap=False):
        """Return X, lazily if its encoded rows are not worth storing and the model reads blocks.

        They never are if they are read once, so with `cheap`; the encoder is then fitted already.
        """
        if not self._reads_lazily:
            return X
        encoder, model = (step for _, step in self.steps)
        # random features are expensive: each costs, for every column, as much as all cosines of a column
        fitted = encoder if cheap else encoder.fit(X)
        cheap = cheap or not encoder.n_fourier or getattr(model, "reads_once", False)
        rows = read_by_block(X, fitted.terms_[-1].outputs.stop, cheap)
        # dataframe output is stored, not read by block
        plain = rows is not None and type(encoder.transform(rows.load(slice(0, 1)))) is np.ndarray
        return rows if plain else X

    def _by_step(self, params):
        """Return the fit parameters, with those of the model under their names in a Pipeline."""
        if get_config()["enable_metadata_routing"]:
            return params
        params = dict(params)
        for given in {"groups", "sample_weight"} & params.keys():
            value, name = params.pop(given), f"{self.steps[-1][0]}__{given}"
            if name in params:
                raise TypeError(
                    f"fit got {given} and {name}, so it is not known which of them counts; write "
                    f"{given} alone."
                )
            if value is not None:
                params[name] = value
        return params

    def _params_of_model(self, params):
        """Return the fit parameters of the model, by their own names."""
        name = self.steps[-1][0]
        if params and get_config()["enable_metadata_routing"]:
            return process_routing(self, "fit", **params)[name].fit
        return {key.removeprefix(f"{name}__"): value for key, value in params.items()}


@contextmanager
def _set_meanwhile(estimator, **params):
    """Set parameters of an estimator for a block; the fits inside keep them as those of the fit."""
    before = {name: getattr(estimator, name) for name in params}
    estimator.set_params(**params)
    try:
        yield
    finally:
        estimator.set_params(**before)


def _check_records(model, rows, y, sample_weight=None, groups=None, **others):
    """Refuse now what the fit of a private model would refuse; the rows stand for those of the fit."""
    if own_config()["strict"]:
        warn_if_seeded(model)  # raises
    refuse_fit_params(model, others)
    if sample_weight is not None:
        require_weights(model)
    Trial(model, model.epsilon).records(rows, Weighted.of(y, sample_weight, groups))


def _encoded(X, encoder):
    """Return the rows of an encoder, made anew in each pass if they are many."""
    fitted = encoder.fit(X)
    lazy = read_by_block(X, fitted.terms_[-1].outputs.stop, cheap=True)
    return fitted.transform(X if lazy is None else lazy)


def _no_step(name, steps, known):
    last = name.split("__")[-1]
    meant = [f"{step}__{last}" for step in steps if f"{step}__{last}" in known]
    return (
        f"{name!r} begins with no step of the pipeline, so it would set nothing; write "
        f"{' or '.join(map(repr, meant or [f'{step}__...' for step in steps]))}."
    )


def tabular_pipeline(schema: Any, model: Estimator, **encoder_params: Any) -> TabularPipeline:
    """Return a Pipeline from a table to a private model, with all bounds from the schema.

    Read more in :doc:`/tables`.

    Parameters
    ----------
    schema : dict, PublicSchema or path of a JSON file
        What is public of the columns: see :class:`PublicSchema`.
    model : estimator
        A private model of dpselect, but no histogram; it is cloned.
    **encoder_params : dict
        Of the :class:`TableEncoder`. With ``ranges="auto"`` a fit learns narrower bounds of numbers
        before it trains the model: with a tenth of the model's epsilon, or with Gaussian noise if the
        model has a delta, and so keeps more than nine tenths (in a fit alone; in a search nine).

    Returns
    -------
    TabularPipeline
        The steps are called "encoder" and "model", so a grid has ``encoder__expansion`` and
        ``model__alpha``. A `base_rate` of None in the model becomes "auto", and a statement lists it as
        chosen.

    Raises
    ------
    TypeError
        If the model is a DPHistogramDensity, which counts in the units of the columns: the page
        "Histograms and tables of counts" has one with categories.
    ValueError
        If the model has a number as `data_norm` or `data_norm_l1` that is not the default, because the
        encoder's norm would overwrite it, or the schema does not say what is public of a column. Texts
        have no entry in a schema: the page "Texts beside columns" says where they go.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPLogisticRegression, StabilityGridSearchCV
    >>> from dpselect.preprocessing import tabular_pipeline
    >>> rng = np.random.default_rng(0)
    >>> age, smokes = rng.integers(18, 100, 5000), rng.choice(["yes", "no"], 5000)
    >>> X, y = np.array([age, smokes], dtype=object).T, (age > 60) | (smokes == "yes")
    >>> schema = {"age": (18, 100), "smokes": ["yes", "no"]}
    >>> model = tabular_pipeline(schema, DPLogisticRegression(classes=[False, True]))
    >>> bool(model.fit(X[:4000], y[:4000]).score(X[4000:], y[4000:]) > 0.8)
    True
    >>> grid = {"encoder__expansion": ["linear", 2, 4]}
    >>> search = StabilityGridSearchCV(model, grid, epsilon=1.0).fit(X[:4000], y[:4000])
    >>> search.privacy_.epsilon
    1.0
    """
    if getattr(type(model), "has_cells", False):
        raise TypeError(
            f"{type(model).__name__} counts records in cells of the columns themselves, and an encoder "
            "would give it curves and codes; number the categories and give it the columns, with bounds "
            'and bin_width (the page "Histograms and tables of counts").'
        )
    given = model.get_params(deep=False) if isinstance(model, BaseEstimator) else {}
    for name in BOUNDS:
        # a default cannot be told from the same number that is given
        default = signature(type(model)).parameters[name].default if name in given else None
        if isinstance(given.get(name), Real) and given[name] != default:
            raise ValueError(
                f"{name}={given[name]!r} of the model would be overwritten by the encoder's "
                "typical_norm, which follows from the schema; leave it out, or write a Pipeline of a "
                "TableEncoder and the model."
            )
    encoder, model = TableEncoder(schema, **encoder_params), clone(model)
    encoder.typical_norm()  # refuse an empty schema here, where it is given
    if model.get_params(deep=False).get("base_rate", 0) is None:
        model.set_params(base_rate="auto")
    return TabularPipeline([("encoder", encoder), ("model", model)])
