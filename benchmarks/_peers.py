"""What private_models.py compares: private models of other libraries, and models without privacy.

Each is a function of (X_train, y_train, X_test, schema, task, target_bounds, epsilon, delta, seed)
that returns a prediction for each row of X_test: the probability of 1, the expected count, or the
number. `METHODS` has the neighbours of each. What they need, which is no dependency of dpselect:
``pip install interpret-core diffprivlib dp-accounting "scikit-learn<1.8"`` (diffprivlib 0.6.6 cannot
be imported with scikit-learn 1.9).

Options of peers that break what they promise, found by reading the code of interpret-core 0.7.8 and
diffprivlib 0.6.6 and tried out, and how they are avoided here:

- DP-EBM without ``feature_types`` or ``privacy_bounds`` reads them from the records, with a warning.
  Here both come from the schema.
- DP-EBM makes bins for categories that occur and for no others, without a warning, also where the
  list of categories is given. A category that one record of 5,600 had was in the bins of 10 of 40
  models of epsilon .1 and delta 1e-6; without that record it can be in none. Here one public row for
  each category joins the training rows.
- DP-EBM's regressor starts from 0 and takes the range of targets for the largest residual. With
  targets from 1,000 to 1,001 the first residuals are 1,000, and the noise is made for 1. Here targets
  are centred. Later residuals are not clipped either, so that its (epsilon, delta) is what its
  authors state, and nothing more.
- ``random_state`` makes noise repeatable; DP-EBM alone warns. It is set here, as nothing is released.
- diffprivlib's LogisticRegression leaves the intercept out of the penalty that its proof needs, and
  takes the norm of a row where its square is meant, so that rows longer than 1 get too little noise.
  Here rows have norm at most 1, a constant column among them, and ``fit_intercept=False``.
- diffprivlib's LinearRegression takes the lower bound of a column, twice, for its largest entry: with
  bounds (0, 1) the diagonal of X'X has no noise at all. Centring by ``fit_intercept`` moves the bounds
  likewise. Here bounds are (-1, 1) for all columns, a constant one among them, and
  ``fit_intercept=False``.
- diffprivlib's GaussianNB calibrates to the width of a column, which is too little where 0 is outside
  of its bounds. Here all columns are in [-1, 1] or [0, 1].
- diffprivlib's forest and naive Bayes are calibrated to a record that comes or goes: replacing one
  costs twice the epsilon that is stated. The forest deals records to trees by their places and number,
  so that even then one that goes moves others to the next tree.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pandas as pd
from scipy.special import expit

ADD_REMOVE, REPLACE = "add or remove one record", "replace one record"
TASKS = ("classes", "counts", "numbers")
# smallest expected count, for the deviance
LEAST_COUNT = 0.01


@dataclass(frozen=True)
class Method:
    """A method and what its guarantee is about.

    Attributes
    ----------
    name : str
    run : callable
    adjacency : str
        Its neighbours; "" for models without privacy.
    delta : bool
        Whether it has a delta; otherwise its guarantee is pure.
    tasks : tuple of str
    note : str
        What it is, for the report.
    """

    name: str
    run: Callable
    adjacency: str
    delta: bool
    tasks: tuple
    note: str

    @property
    def pays_twice(self):
        """bool : Whether replacing a record is two steps of its neighbours."""
        return self.adjacency == ADD_REMOVE

    def nominal(self, epsilon, delta, footing):
        """Return what the method is given, so that it states, or costs, (epsilon, delta).

        On the footing "replace-one" a method whose neighbours add or remove a record must pay for two
        of their steps: (epsilon, delta) twice is (2 epsilon, (1 + exp(epsilon)) delta).
        """
        if footing == "nominal" or not self.pays_twice:
            return epsilon, delta
        return epsilon / 2, delta / (1 + math.exp(epsilon / 2))


def column_kind(entry):
    """Return what a schema says of a column, as a dict with "bounds" or "categories"."""
    if isinstance(entry, dict):
        return entry
    return {"bounds": entry} if isinstance(entry, tuple) else {"categories": entry}


def numbers_of(X, name, said, transform=True):
    """Return a column of numbers on [-1, 1], nan where it is missing."""
    change = {None: np.positive, "log1p": np.log1p, "arcsinh": np.arcsinh}[
        said.get("transform") if transform else None
    ]
    low, high = said["bounds"]
    values = change(np.clip(X[name].to_numpy(np.float64), low, high))
    return 2 * (values - change(low)) / (change(high) - change(low)) - 1


def filled(X, name, said, transform=True):
    """Return a column of numbers on [-1, 1] with its fill value, or 0, in gaps, and where these are."""
    values = numbers_of(X, name, said, transform)
    missing = np.isnan(values)
    if "fill" in said:
        fill = numbers_of(pd.DataFrame({name: [said["fill"]]}), name, said, transform)[0]
    else:
        fill = 0.0
    return np.where(missing, fill, values), missing


def codes_of(X, name, said):
    """Return the codes of a column of categories; -1 for gaps and for values that are not listed."""
    return pd.Index(said["categories"]).get_indexer(X[name])


def encode(X, schema, transform=True):
    """Return columns for linear models, from what is public alone.

    Parameters
    ----------
    X : DataFrame of shape (n, p)
    schema : dict
    transform : bool, default=True
        Whether to use the transforms of the schema.

    Returns
    -------
    columns : ndarray of shape (n, d)
        Numbers on [-1, 1], a missing one at its fill value or in the middle, with a column that says so;
        one column for each category, and one for a missing one.
    square : float
        Squared norm of a row whose numbers are even over their bounds.
    """
    columns, square = [], 0.0
    for name, entry in schema.items():
        said = column_kind(entry)
        if "bounds" in said:
            values, missing = filled(X, name, said, transform)
            columns.append(values[:, None])
            if said.get("missing"):
                columns.append(missing[:, None].astype(float))
            square += 1 / 3
        else:
            codes, width = codes_of(X, name, said), len(said["categories"])
            # one column more, the last, for code -1; it is kept if a value may be missing
            hot = np.eye(width + 1)[codes]
            columns.append(hot if said.get("missing") else hot[:, :-1])
            square += 1.0
    return np.hstack(columns), square


def unit_rows(X_train, X_test, schema):
    """Return encoded rows of norm at most 1, with a constant column, and its value."""
    (train, square), (test, _) = encode(X_train, schema), encode(X_test, schema)
    rows = []
    for X in (train, test):
        # columns that are scaled to a typical norm of 1, longer rows cut
        X = np.hstack([X, np.ones((len(X), 1))]) / math.sqrt(square + 1)
        rows.append(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0))
    return rows


def coded(X, schema):
    """Return numbers as they are (clipped), gaps as nan, and categories as codes."""
    columns = {}
    for name, entry in schema.items():
        said = column_kind(entry)
        if "bounds" in said:
            columns[name] = X[name].to_numpy(np.float64).clip(*said["bounds"])
        else:
            codes = codes_of(X, name, said)
            columns[name] = np.where(codes < 0, len(said["categories"]), codes).astype(np.float64)
    return pd.DataFrame(columns)


# --- InterpretML


def ebm(X_train, y_train, X_test, schema, task, target_bounds, epsilon, delta, seed, **options):
    """InterpretML's DP-EBM; see the head of this file for what is added to its defaults."""
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    kinds = _ebm_kinds(schema)
    levels = {name: kind for name, kind in kinds.items() if kind != "continuous"}
    n_public = max(map(len, levels.values()), default=0)
    public = pd.DataFrame(
        {
            name: [
                levels[name][i % len(levels[name])] if name in levels else 0.0 for i in range(n_public)
            ]
            for name in kinds
        }
    )
    train = _ebm_columns(X_train, schema)
    train = pd.concat([train, public], ignore_index=True) if n_public else train
    model = {"classes": DPExplainableBoostingClassifier}.get(task, DPExplainableBoostingRegressor)(
        feature_names=list(kinds),
        feature_types=list(kinds.values()),
        privacy_bounds={name: (-1.0, 1.0) for name in kinds if name not in levels},
        epsilon=epsilon,
        delta=delta,
        random_state=seed,
        n_jobs=1,
        **options,
    )
    if task == "classes":
        y = np.concatenate([y_train, np.arange(n_public) % 2]).astype(int)
        return model.fit(train, y).predict_proba(_ebm_columns(X_test, schema))[:, 1]
    low, high = target_bounds
    middle, half = (low + high) / 2, (high - low) / 2
    model.set_params(privacy_target_min=-half, privacy_target_max=half)
    y = np.concatenate([y_train - middle, np.zeros(n_public)])
    return middle + model.fit(train, y).predict(_ebm_columns(X_test, schema))


def _ebm_kinds(schema):
    """Return the type of each column of :func:`_ebm_columns`: "continuous", or all its categories."""
    kinds = {}
    for name, entry in schema.items():
        said = column_kind(entry)
        kinds[name] = "continuous" if "bounds" in said else [*said["categories"], "<missing>"]
        if "bounds" in said and said.get("missing"):
            kinds[f"{name} missing"] = ["no", "yes"]
    return kinds


def _ebm_columns(X, schema):
    """Return transformed numbers without gaps, whether they were missing, and categories as texts."""
    columns = {}
    for name, entry in schema.items():
        said = column_kind(entry)
        if "bounds" in said:
            columns[name], missing = filled(X, name, said)
            if said.get("missing"):
                columns[f"{name} missing"] = np.where(missing, "yes", "no").astype(object)
        else:
            levels = np.array([*said["categories"], "<missing>"], dtype=object)
            columns[name] = levels[codes_of(X, name, said)]
    return pd.DataFrame(columns)


def ebm_faster(*arguments):
    """DP-EBM with learning rate .1."""
    return ebm(*arguments, learning_rate=0.1)


# --- diffprivlib


def diffprivlib_logistic(X_train, y_train, X_test, schema, task, target_bounds, epsilon, delta, seed):
    """diffprivlib's logistic regression, by objective perturbation."""
    from diffprivlib.models import LogisticRegression

    train, test = unit_rows(X_train, X_test, schema)
    model = LogisticRegression(
        epsilon=epsilon, data_norm=1.0, fit_intercept=False, max_iter=1000, random_state=seed
    )
    return model.fit(train, y_train.astype(int)).predict_proba(test)[:, 1]


def diffprivlib_forest(X_train, y_train, X_test, schema, task, target_bounds, epsilon, delta, seed):
    """diffprivlib's random forest, by its defaults."""
    from diffprivlib.models import RandomForestClassifier

    (train, _), (test, _) = encode(X_train, schema), encode(X_test, schema)
    model = RandomForestClassifier(
        epsilon=epsilon, bounds=_box(train, schema), classes=[0, 1], random_state=seed
    )
    return model.fit(train, y_train.astype(int)).predict_proba(test)[:, 1]


def diffprivlib_bayes(X_train, y_train, X_test, schema, task, target_bounds, epsilon, delta, seed):
    """diffprivlib's Gaussian naive Bayes."""
    from diffprivlib.models import GaussianNB

    (train, _), (test, _) = encode(X_train, schema), encode(X_test, schema)
    model = GaussianNB(epsilon=epsilon, bounds=_box(train, schema), random_state=seed)
    return model.fit(train, y_train.astype(int)).predict_proba(test)[:, 1]


def diffprivlib_linear(X_train, y_train, X_test, schema, task, target_bounds, epsilon, delta, seed):
    """diffprivlib's linear regression, by the functional mechanism."""
    from diffprivlib.models import LinearRegression

    train, test = (np.hstack([encode(X, schema)[0], np.ones((len(X), 1))]) for X in (X_train, X_test))
    low, high = target_bounds
    middle, half = (low + high) / 2, (high - low) / 2
    model = LinearRegression(
        epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-half, half), fit_intercept=False, random_state=seed
    )
    return middle + model.fit(train, y_train - middle).predict(test)


def _box(encoded, schema):
    """Return the bounds of encoded columns, which hold -1 for numbers and 0 for the rest."""
    low = []
    for entry in schema.values():
        said = column_kind(entry)
        if "bounds" in said:
            low += [-1.0, *([0.0] if said.get("missing") else [])]
        else:
            low += [0.0] * (len(said["categories"]) + bool(said.get("missing")))
    return np.array(low), np.ones(encoded.shape[1])


# --- DP-SGD

# The same for all tables of a task; chosen by test scores on Adult, churn, MAGIC, visits, wages and
# houses, in favour of this peer.
SGD_RATE, SGD_STEPS, SGD_CLIP = 0.05, 200, 0.5
# Smallest and largest step, and the n epsilon/d from which on it grows from the one to the other.
SGD_STEP = {"classes": (4.0, 32.0, 25), "counts": (4.0, 32.0, 100), "numbers": (1.0, 2.0, 100)}


@cache
def sgd_noise(epsilon, delta):
    """Return noise over clipping norm of the Poisson-subsampled Gaussian mechanism, by its PLD."""
    import dp_accounting

    def event(noise):
        step = dp_accounting.PoissonSampledDpEvent(SGD_RATE, dp_accounting.GaussianDpEvent(noise))
        return dp_accounting.SelfComposedDpEvent(step, SGD_STEPS)

    return dp_accounting.calibrate_dp_mechanism(
        lambda: dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-3 * min(1.0, epsilon)),
        event,
        epsilon,
        delta,
        bracket_interval=dp_accounting.LowerEndpointAndGuess(0.5, 2 + 4 / epsilon),
        tol=0.01,
    )


def dp_sgd(X_train, y_train, X_test, schema, task, target_bounds, epsilon, delta, seed):
    """Generalised linear model by DP-SGD: Poisson sampling, clipped gradients, Gaussian noise.

    The mean of the last half of the steps is the model. Numbers and counts are scaled to their bounds.
    """
    rng = np.random.default_rng(seed)
    train, test = unit_rows(X_train, X_test, schema)
    low, high = target_bounds
    y = (y_train - low) / (high - low)
    mean = {"classes": expit, "counts": lambda m: np.exp(np.minimum(m, 0)), "numbers": np.positive}[task]
    noise = sgd_noise(epsilon, delta) * SGD_CLIP
    expected = SGD_RATE * len(train)
    smallest, largest, start = SGD_STEP[task]
    size = smallest * len(train) * epsilon / train.shape[1] / start
    size = min(max(size, smallest), largest)
    coef, total = np.zeros(train.shape[1]), np.zeros(train.shape[1])
    if task == "counts":  # a rate of a tenth of the bound to start with, and not the bound
        coef[-1] = math.log(0.1) * math.sqrt(encode(X_test[:1], schema)[1] + 1)
    norms = np.linalg.norm(train, axis=1)
    for step in range(SGD_STEPS):
        batch = np.flatnonzero(rng.random(len(train)) < SGD_RATE)
        residual = mean(train[batch] @ coef) - y[batch]
        residual *= np.minimum(1.0, SGD_CLIP / np.maximum(np.abs(residual) * norms[batch], 1e-12))
        gradient = residual @ train[batch] + noise * rng.standard_normal(len(coef))
        coef = coef - size * gradient / expected
        if step >= SGD_STEPS // 2:
            total += coef
    return low + (high - low) * mean(test @ total / (SGD_STEPS - SGD_STEPS // 2))


# --- dpselect


def readme_recipe(X_train, y_train, X_test, schema, task, target_bounds, epsilon, delta, seed):
    """What the README said before `tabular_pipeline`: bounds, one-hot, a data norm by hand, defaults."""
    from dpselect import DPLogisticRegression, DPPoissonRegressor, DPRidge

    (train, square), (test, _) = (encode(X, schema, transform=False) for X in (X_train, X_test))
    high = max(map(abs, target_bounds))
    if task == "classes":
        model = DPLogisticRegression(
            epsilon, data_norm=math.sqrt(square), classes=[0, 1], random_state=seed
        )
        return model.fit(train, y_train.astype(int)).predict_proba(test)[:, 1]
    if task == "counts":
        model = DPPoissonRegressor(
            epsilon, target_bound=high, data_norm=math.sqrt(square), random_state=seed
        )
        return model.fit(train, y_train).predict(test)
    # a number that is even over its bounds adds 1/2 to the l1 norm, a category 1
    n_numbers = sum("bounds" in column_kind(entry) for entry in schema.values())
    model = DPRidge(
        epsilon,
        norm="l1",
        data_norm=math.sqrt(square),
        data_norm_l1=len(schema) - n_numbers / 2,
        target_range=(-high, high),
        random_state=seed,
    )
    return model.fit(train, y_train).predict(test)


def default_pipeline(schema, task, target_bounds, epsilon, seed, **options):
    """Return `tabular_pipeline` and a model by their defaults, but for `options` of the model."""
    from dpselect import DPHuberRegressor, DPLogisticRegression, DPPoissonRegressor
    from dpselect.preprocessing import tabular_pipeline

    model = {
        "classes": DPLogisticRegression(epsilon, classes=[0, 1], random_state=seed),
        "counts": DPPoissonRegressor(epsilon, target_bound=target_bounds[1], random_state=seed),
        "numbers": DPHuberRegressor(epsilon, target_range=target_bounds, random_state=seed),
    }[task].set_params(**options)
    # peers have one column for a flag; here that is a list of two categories, as the page "Tables" says
    schema = {
        name: ["0", "1"] if column_kind(entry).get("flag") else entry for name, entry in schema.items()
    }
    return tabular_pipeline(schema, model)


def dpselect_model(
    X_train,
    y_train,
    X_test,
    schema,
    task,
    target_bounds,
    epsilon,
    delta,
    seed,
    uses_delta=False,
    **options,
):
    """Our method: `tabular_pipeline` and a model by their defaults, but for `options` and `delta`."""
    options["delta"] = delta if uses_delta else 0.0
    fitted = default_pipeline(schema, task, target_bounds, epsilon, seed, **options).fit(
        X_train, y_train
    )
    return fitted.predict_proba(X_test)[:, 1] if task == "classes" else fitted.predict(X_test)


def ridge_hindsight(X_train, y_train, X_test, schema, task, target_bounds, epsilon, delta, seed):
    """Return the predictions of each setting of DPRidge, of which the best on test rows is kept."""
    from dpselect import DPRidge

    (train, square), (test, _) = encode(X_train, schema), encode(X_test, schema)
    n_numbers = sum("bounds" in column_kind(entry) for entry in schema.values())
    lengths = {"l1": len(schema) - n_numbers / 2, "l2": None}
    settings = [("covariance", norm, alpha) for norm in ("l1", "l2") for alpha in (0.001, 0.01, 0.1)] + [
        ("objective", norm, alpha) for norm in ("l1", "l2") for alpha in (0.1, 1.0, 10.0)
    ]
    predictions = []
    for perturbation, norm, alpha in settings:
        model = DPRidge(
            epsilon,
            perturbation=perturbation,
            norm=norm,
            alpha=alpha,
            data_norm=math.sqrt(square),
            data_norm_l1=lengths[norm],
            target_range=target_bounds,
            random_state=seed,
        )
        try:
            predictions.append(model.fit(train, y_train).predict(test))
        except ValueError:  # objective perturbation asks for a larger alpha
            continue
    return np.array(predictions)


# --- without privacy


def constant(X_train, y_train, X_test, schema, task, target_bounds, epsilon, delta, seed):
    """The mean of the training rows."""
    return np.full(len(X_test), y_train.mean())


def linear(X_train, y_train, X_test, schema, task, target_bounds, epsilon, delta, seed):
    """scikit-learn's linear model on the public columns, by its defaults."""
    from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

    (train, _), (test, _) = encode(X_train, schema), encode(X_test, schema)
    if task == "classes":
        model = LogisticRegression(solver="newton-cholesky", max_iter=1000)
        return model.fit(train, y_train).predict_proba(test)[:, 1]
    model = (
        Ridge()
        if task == "numbers"
        else PoissonRegressor(alpha=1e-4, max_iter=1000, solver="newton-cholesky")
    )
    return model.fit(train, y_train).predict(test)


def boosting(X_train, y_train, X_test, schema, task, target_bounds, epsilon, delta, seed):
    """scikit-learn's HistGradientBoosting, by its defaults."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    train, test = coded(X_train, schema), coded(X_test, schema)
    common = {
        "categorical_features": ["categories" in column_kind(entry) for entry in schema.values()],
        "random_state": seed,
    }
    if task == "classes":
        model = HistGradientBoostingClassifier(**common).fit(train, y_train)
        return model.predict_proba(test)[:, 1]
    loss = "poisson" if task == "counts" else "squared_error"
    return HistGradientBoostingRegressor(loss=loss, **common).fit(train, y_train).predict(test)


CLASSES, NUMBERS = ("classes",), ("counts", "numbers")
METHODS = {
    method.name: method
    for method in (
        Method("dpselect", dpselect_model, REPLACE, False, TASKS, "tabular_pipeline, defaults"),
        Method(
            "dpselect, delta=1e-6",
            partial(dpselect_model, uses_delta=True),
            REPLACE,
            True,
            TASKS,
            "the same with a delta",
        ),
        Method(
            "dpselect, logistic loss",
            partial(dpselect_model, max_derivative=None),
            REPLACE,
            False,
            CLASSES,
            "DPLogisticRegression(max_derivative=None)",
        ),
        Method(
            "dpselect, logistic loss, delta=1e-6",
            partial(dpselect_model, uses_delta=True, max_derivative=None),
            REPLACE,
            True,
            CLASSES,
            "the same with a delta",
        ),
        Method("README", readme_recipe, REPLACE, False, TASKS, "README's recipe of before"),
        Method(
            "ridge*",
            ridge_hindsight,
            REPLACE,
            False,
            ("numbers",),
            "best of 12 settings of DPRidge by test score, which no private choice reaches",
        ),
        Method("DP-EBM", ebm, ADD_REMOVE, True, TASKS, "InterpretML, defaults, bounds and types given"),
        Method("DP-EBM .1", ebm_faster, ADD_REMOVE, True, TASKS, "the same with learning rate .1"),
        Method("dpl logistic", diffprivlib_logistic, REPLACE, False, CLASSES, "diffprivlib"),
        Method("dpl forest", diffprivlib_forest, ADD_REMOVE, False, CLASSES, "diffprivlib, defaults"),
        Method("dpl bayes", diffprivlib_bayes, ADD_REMOVE, False, CLASSES, "diffprivlib"),
        Method("dpl linear", diffprivlib_linear, REPLACE, False, NUMBERS, "diffprivlib"),
        Method("DP-SGD", dp_sgd, ADD_REMOVE, True, TASKS, "linear, Poisson sampling, PLD accountant"),
        Method("constant", constant, "", False, TASKS, "mean of the training rows, not private"),
        Method("linear", linear, "", False, TASKS, "scikit-learn, not private"),
        Method("boosting", boosting, "", False, TASKS, "HistGradientBoosting, not private"),
    )
}


def predict(method, parts, table, epsilon, delta, seed):
    """Return the predictions of a method on one split, cut to the bounds of the target."""
    X_train, y_train, X_test, _ = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = method.run(
            X_train, y_train, X_test, table.schema, table.task, table.target_bounds, epsilon, delta, seed
        )
    low, high = table.target_bounds
    low = LEAST_COUNT if table.task == "counts" else low
    return np.clip(np.nan_to_num(predicted, nan=(low + high) / 2), low, high)
