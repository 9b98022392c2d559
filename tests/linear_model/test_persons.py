"""Fits of rows of persons: what is minimised, how much noise hides a person, which twins are caught."""

import math
import pickle
import uuid
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from dpselect import (
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    PrivacyLedger,
    RowChunks,
)
from dpselect.linear_model.calibration import extra_regularisation, largest_rank, noise_epsilon
from dpselect.linear_model.losses import (
    HuberHingeLoss,
    LogisticLoss,
    PoissonLoss,
    PseudoHuberLoss,
    WeightedLoss,
)
from dpselect.metrics import RampScore
from dpselect.noise import root_stream
from dpselect.records.persons import Persons
from dpselect.records.public_shape import PublicShape
from tests.marks import a_third

INF = float("inf")
RNG = np.random.default_rng(0)
N_ROWS = 400
X = RNG.uniform(-0.5, 0.5, size=(N_ROWS, 3))
LABELS = (X @ [1.0, -2.0, 0.5] > 0).astype(int)
# some persons have one row, others dozens
IDS = np.unique(np.minimum(RNG.geometric(0.05, N_ROWS), 60), return_inverse=True)[1]
N = IDS.max() + 1
SHARE = 1 / np.bincount(IDS)[IDS]

MODELS = {
    "logistic": (DPLogisticRegression(classes=[0, 1]), LABELS),
    "steep": (DPLogisticRegression(classes=[0, 1], max_derivative=None), LABELS),
    "three classes": (DPLogisticRegression(classes=[0, 1, 2]), np.digitize(X[:, 0], [-0.2, 0.2])),
    "svc": (DPLinearSVC(classes=[0, 1]), LABELS),
    "poisson": (DPPoissonRegressor(target_bound=10.0), RNG.poisson(np.exp(X[:, 0]))),
    "huber": (DPHuberRegressor(target_range=(-1, 1)), X[:, 0] - X[:, 2]),
}
KINDS = pytest.mark.parametrize("name", MODELS)


def model_and_targets(name, **params):
    model, y = MODELS[name]
    return clone(model).set_params(random_state=root_stream(0), **params), y


# ---- what is minimised


@KINDS
def test_a_person_counts_once_whatever_the_number_of_rows(name):
    model, y = model_and_targets(name, epsilon=INF, alpha=0.1)
    found = model.fit(X, y, groups=IDS).coef_
    # the mean is over N persons, where weights make one over all rows
    model.set_params(alpha=0.1 * N / N_ROWS, max_sample_weight=1.0)
    assert found == pytest.approx(model.fit(X, y, sample_weight=SHARE).coef_, abs=1e-8)


def test_it_is_scikit_learn_s_logistic_regression():
    model, y = model_and_targets("logistic", epsilon=INF, alpha=0.01, fit_intercept=False)
    exact = LogisticRegression(C=1 / (N * 0.01), tol=1e-10, fit_intercept=False, max_iter=1000)
    exact.fit(X, y, sample_weight=SHARE)
    assert model.fit(X, y, groups=IDS).coef_ == pytest.approx(exact.coef_, abs=1e-6)


@KINDS
def test_weights_of_rows_and_of_persons_multiply(name):
    own = RNG.uniform(0, 3, N_ROWS)
    model, y = model_and_targets(name, epsilon=INF, alpha=0.1, max_sample_weight=2.0)
    found = model.fit(X, y, sample_weight=own, groups=IDS).coef_
    model.set_params(alpha=0.1 * N / N_ROWS)
    expected = model.fit(X, y, sample_weight=np.minimum(own, 2.0) * SHARE).coef_
    assert found == pytest.approx(expected, abs=1e-8)


@KINDS
@pytest.mark.parametrize("perturbation", ["objective", "output"])
def test_a_thousand_equal_rows_are_one(name, perturbation):
    """Who has the same row many times over is who has it once, and the noise says so."""
    model, y = model_and_targets(name, perturbation=perturbation)
    times = np.where(np.arange(N_ROWS) == 7, 1000, 1)
    once = model.fit(X, y, groups=np.arange(N_ROWS)).coef_
    many = model.fit(
        np.repeat(X, times, axis=0), np.repeat(y, times), groups=np.repeat(np.arange(N_ROWS), times)
    ).coef_
    assert many == pytest.approx(once, rel=1e-8)


# where curvature of persons, which has a higher rank, costs no more than that of records
FREE = {
    "logistic": {"perturbation": "output"}, "huber": {"alpha": 0.1}, "svc": {"perturbation": "output"},
    "poisson": {"perturbation": "output"}, "three classes": {"alpha": 0.1, "max_derivative": None},
    "steep": {"alpha": 0.1},
}  # fmt: skip


@KINDS
def test_one_row_a_person_is_no_groups_to_the_last_bit(name):
    model, y = model_and_targets(name, **FREE[name])
    if name in ("logistic", "steep", "huber"):
        model.set_params(data_norm="auto", data_norm_l1="auto")
    plain = model.fit(X, y)
    expected = plain.coef_
    # ids in the order of the rows
    for ids in (np.arange(N_ROWS), [f"{i:03d}" for i in range(N_ROWS)], np.linspace(0, 1, N_ROWS)):
        assert np.array_equal(model.fit(X, y, groups=ids).coef_, expected)


@KINDS
def test_neither_the_order_of_rows_nor_the_names_count(name):
    model, y = model_and_targets(name)
    expected = model.fit(X, y, groups=IDS).coef_
    order = np.random.default_rng(3).permutation(N_ROWS)
    for ids in (
        IDS * 7 - 100,
        np.array([f"{i:03d}" for i in IDS]),
        (IDS + 0.5).tolist(),
        [uuid.UUID(int=int(i)) for i in IDS],
        np.array([str(i) for i in IDS], dtype=object),
    ):
        found = model.fit(X[order], y[order], groups=np.asarray(ids)[order]).coef_
        assert found == pytest.approx(expected, rel=1e-7)


# ---- noise: exact densities


def log_density(w, persons, loss, mu, linear_scale):
    """Log-density of objective perturbation at w, up to a constant, for persons (rows, targets)."""
    w = np.asarray(w, dtype=float)
    gradient, hessian = mu * w, mu * np.eye(len(w))
    for rows, targets in persons:
        z, share = rows @ w, 1 / (len(rows) * len(persons))
        gradient = gradient + share * rows.T @ loss.derivative(z.copy(), targets)
        curved = loss.second_derivative(z.copy(), targets)
        hessian = hessian + share * rows.T @ (curved[:, None] * rows)
    return -np.linalg.norm(gradient) / linear_scale + np.linalg.slogdet(hessian)[1]


@pytest.mark.parametrize("epsilon", [2.0, 6.0])
def test_rows_along_several_axes_curve_more_than_one(epsilon):
    """Two rows at a right angle curve in two directions: the one logarithm of records is too little."""
    loss, n, found = HuberHingeLoss(0.5), 20, {}
    # those who stay do not curve, and pull against the first person
    others = [(np.array([[-1.0, 0.0]]), np.ones(1))] * (n - 1)
    for rank in (1, 2):
        mu = extra_regularisation(loss, n, 1.0, 0.0, epsilon, rank)
        scale = 2 / (n * noise_epsilon(loss, n, 1.0, mu, epsilon, rank))
        losses = []
        for angle in np.linspace(0.0, np.pi / 4, 40):
            cos, sin = math.cos(angle), math.sin(angle)
            one = np.array([[cos, sin], [cos, -sin]]), np.ones(2)
            w = [(0.5 + 1e-9) / cos, 0.0]  # both margins just above 1 - h
            densities = [log_density(w, [p, *others], loss, mu, scale) for p in (one, others[0])]
            losses.append(densities[0] - densities[1])
        found[rank] = max(losses)
    assert 0.8 * epsilon < found[2] <= epsilon
    # the broken twin has the determinant of one row
    assert found[1] > 1.01 * epsilon


@pytest.mark.parametrize("kappa", [3.2, 1.0])
def test_the_mean_of_two_residuals_curves_more_than_one_between(kappa):
    """The pseudo-Huber loss: one row at a small residual and one at a large one."""
    epsilon, loss, found = 4.0, PseudoHuberLoss(0.0, 1.0), {}
    e = noise_epsilon(loss, 1, 1.0, 1 / kappa, epsilon, rank=1)
    broken = noise_epsilon(loss, 1, 1.0, 1 / kappa, epsilon)
    shares = np.linspace(0, 1, 101)
    small = np.linspace(0.0, 0.999, 200)[:, None]
    for name, part in (("right", e), ("broken twin", broken)):
        slope = shares * small + (1 - shares)
        curved = shares * loss.curvature_at(small)
        found[name] = (part * (1 + slope) / 2 + np.log1p(kappa * curved)).max()
    assert found["right"] <= epsilon * (1 + 1e-12) and found["right"] > 0.999 * epsilon
    assert kappa < 2 or found["broken twin"] > 1.005 * epsilon
    # and as a density: 100 rows in one column, at a large w
    s, share = 0.5, 66
    targets = np.append(np.full(share, 1e4 - s / math.sqrt(1 - s * s)), np.full(100 - share, -1e9))
    one, other = (np.ones((100, 1)), targets), (np.ones((1, 1)), np.full(1, 1e9))
    mu = 1 / kappa
    densities = [log_density([1e4], [p], loss, mu, 2 / e) for p in (one, other)]
    # the second pulls the other way, as does the penalty
    assert densities[1] - densities[0] <= epsilon and densities[0] - densities[1] <= epsilon


LOSSES = [LogisticLoss(), HuberHingeLoss(0.5), PseudoHuberLoss(0.0, 1.0), PoissonLoss(2.0)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("d", a_third([1, 2, 3]))
@pytest.mark.parametrize("n", [1, 4])
def test_no_person_moves_the_density_by_more_than_epsilon(loss, d, n):
    """A search over persons of up to 8 rows, those who stay included, and over what comes out."""
    rng, rank, alpha = np.random.default_rng(d), largest_rank(d), 0.02
    epsilon, worst = 2.0, dict.fromkeys(["right", "sum of rows", "n of rows"], -INF)
    mu = alpha + extra_regularisation(loss, n, 1.0, alpha, epsilon, rank)
    scale = 2 * loss.lipschitz / (n * noise_epsilon(loss, n, 1.0, mu, epsilon, rank))

    regression = isinstance(loss, (PseudoHuberLoss, PoissonLoss))

    def person(size):
        rows = rng.normal(size=(size, d))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        targets = rng.choice([-9.0, -1.0, 0.0, 0.7, 3.0, 9.0] if regression else [-1.0, 1.0], size)
        return rows, targets

    def ratio(case, scale):
        w, *persons, rest = case
        one, other = (log_density(w, [person, *rest], loss, mu, scale) for person in persons)
        return abs(one - other)

    for i in range(300):
        one, other = person(rng.integers(1, 9)), person(rng.integers(1, 9))
        rest = [person(rng.integers(1, 4)) for _ in range(n - 1)]
        w = rng.normal(size=d) * 10 ** rng.uniform(-1, 1.5)
        if i % 2:  # all rows alike, and opposite
            rows = np.tile(w / np.linalg.norm(w), (5, 1))
            one, other = (-rows, np.full(5, 9.0 if regression else 1.0)), (rows, np.full(5, -9.0))
            if not regression:
                other = rows, np.ones(5)
        case = w, one, other, rest
        worst["right"] = max(worst["right"], ratio(case, scale))
        # twins: rows are added up where they should be averaged, or the noise is that of all rows
        summed = w, *((len(rows) * rows, targets) for rows, targets in (one, other)), rest
        worst["sum of rows"] = max(worst["sum of rows"], ratio(summed, scale))
        counted = scale * n / (n - 1 + len(one[0]))
        worst["n of rows"] = max(worst["n of rows"], ratio(case, counted))
    assert 0.2 * epsilon < worst["right"] <= epsilon
    assert worst["sum of rows"] > epsilon
    assert max(n, d) > 2 or worst["n of rows"] > epsilon


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_noise_of_persons_beside_that_of_records(loss, epsilon):
    for kappa in (0.01, 0.3, 2.0):
        mu = 1 / kappa + extra_regularisation(loss, 1, 1.0, 1 / kappa, epsilon, 64)
        parts = [noise_epsilon(loss, 1, 1.0, mu, epsilon, rank) for rank in (None, 1, 2, 8, 64)]
        assert (np.diff(parts) <= 0).all() and parts[-1] >= epsilon / 2 * (1 - 1e-12)
        if not isinstance(loss, PseudoHuberLoss):
            assert parts[0] == parts[1]
        # weights up to W multiply kappa
        weighted = WeightedLoss(loss, 4.0)
        if loss is LOSSES[0]:
            more = 4 * mu
            assert noise_epsilon(weighted, 1, 1.0, more, epsilon, 8) == parts[3]
    assert [largest_rank(d) for d in (1, 2, 3, 8, 9)] == [1, 2, 4, 8, 16]


# ---- noise: how far a person moves the minimiser


class WeightsForgotten(DPLogisticRegression):
    """The broken twin: all rows of a person count in full."""

    def _check_records(self, X, y):
        return super()._check_records(X, y)

    def _records(self, X, y):
        records = super()._records(X, y)
        if records.persons is None:
            return records
        return replace(
            records, persons=replace(records.persons, weight=np.ones(len(records.persons.number)))
        )


class RowsCounted(DPLogisticRegression):
    """The broken twin: the noise is that of as many persons as there are rows."""

    def _release(self, records, calibration, noise):
        shape = replace(records.shape, n_samples=len(records.X))
        return super()._release(records, self.calibration(shape, calibration.epsilon), noise)


def moved(kind, n_rows, n=10):
    """How far a person's rows, replaced by as many others, move coefficients.

    In units of the bound of a loss whose derivative is 1.
    """
    model = kind(
        alpha=50.0,
        classes=[0, 1],
        fit_intercept=False,
        perturbation="output",
        random_state=root_stream(0),
    )
    rows, y = np.zeros((n - 1 + n_rows, 1)), np.ones(n - 1 + n_rows, dtype=int)
    ids = np.append(np.arange(1, n), np.zeros(n_rows, dtype=int))
    rows[n - 1 :] = 5.0  # clipped row by row
    # of very short models the derivative is nearly 1/2, and other targets have the other half
    one = model.fit(rows, y, groups=ids).coef_
    other = clone(model).fit(-rows, y, groups=ids).coef_
    scale = model.calibration(PublicShape(n, 1, persons=True)).scales.output_scale
    return float(np.abs(one - other).max() / (model.epsilon * scale / model.largest_derivative))


@pytest.mark.parametrize("n_rows", [1, 2, 10, 1000])
def test_output_noise_hides_a_person_with_any_number_of_rows(n_rows):
    assert 0.49 < moved(DPLogisticRegression, n_rows) < 0.51  # |phi'| is 1/2 at 0
    if n_rows > 2:
        assert moved(WeightsForgotten, n_rows) > 2
        # less noise hides the same sensitivity
    counted = RowsCounted(perturbation="output", alpha=1.0, classes=[0, 1], fit_intercept=False)
    right = clone(DPLogisticRegression(**counted.get_params()))
    ids = np.append(np.arange(1, 100), np.zeros(n_rows, dtype=int))
    rows, y = np.full((len(ids), 1), 0.5), np.ones(len(ids), dtype=int)
    spread = [
        np.std(
            [
                clone(model).set_params(random_state=root_stream(i)).fit(rows, y, groups=ids).coef_
                for i in range(40)
            ]
        )
        for model in (right, counted)
    ]
    # the same noise, but for its scale
    assert spread[1] / spread[0] == pytest.approx(100 / (99 + n_rows), rel=0.05)


def test_certificates_and_risks_are_those_of_persons():
    model, _ = model_and_targets("steep", alpha=1.0)
    persons, records = (PublicShape(1000, 3, persons=p) for p in (True, False))
    for shape in (persons, records):
        found = model.calibration(shape).certificate(RampScore(-2, 2), failure_probability=1e-6)
        assert found.training > 0
    one, other = (model.calibration(shape) for shape in (persons, records))
    assert one.scales == other.scales and one.risk_bound(2.0) == other.risk_bound(2.0)


# ---- where records are, and what is refused


@pytest.mark.parametrize("name", ["three classes", "huber"])
def test_rows_beyond_memory_belong_to_persons_alike(name, tmp_path):
    model, y = model_and_targets(name, data_norm="auto")
    expected = model.fit(X, y, groups=IDS).coef_
    mapped = np.memmap(tmp_path / "rows", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    parts = np.split(np.arange(N_ROWS), 4)  # each person's rows are in several

    def chunks(values, width):
        return RowChunks(lambda i: values[parts[i]], [N_ROWS // 4] * 4, width)

    ways = [
        (mapped, y, IDS),
        (chunks(X, 3), chunks(y, 1), chunks(IDS, 1)),
        (chunks(X, 3), y, IDS.tolist()),
    ]
    da = pytest.importorskip("dask.array")
    lazy = [da.from_array(part, chunks=(100, *part.shape[1:])) for part in (X, y, IDS)]
    ways += [tuple(lazy), (*lazy[:2], IDS), (X, y, lazy[2])]
    for rows, labels, ids in ways:
        assert model.fit(rows, labels, groups=ids).coef_ == pytest.approx(expected, rel=1e-9)


SECRET = "Ms. 7.316452"


@pytest.mark.parametrize("spoilt, said", [
    (None, "missing"), (float("nan"), "missing"), (np.datetime64("NaT"), "missing"),
    ([SECRET], "hashed"), (3, "order"), ({SECRET}, "hashed"),
])  # fmt: skip
def test_bad_ids_are_refused_without_telling_which(spoilt, said):
    model, y = model_and_targets("logistic")
    ids = [SECRET] * (N_ROWS - 1) + [spoilt]
    with pytest.raises(ValueError, match=f"groups .*{said}") as caught:
        model.fit(X, y, groups=ids)
    told = caught.value
    while told is not None:
        assert "7.31" not in str(told)
        told = told.__context__


@pytest.mark.parametrize("ids", [
    np.where(IDS == 3, np.nan, IDS), np.full(N_ROWS, "NaT", dtype="M8[s]"), IDS[:-1],
    np.stack([IDS, IDS], axis=1), 3, "one", [[1, 2]] * N_ROWS,
], ids=["nan", "NaT", "few", "wide", "number", "text", "pairs"])  # fmt: skip
def test_ids_of_another_form_are_refused(ids):
    model, y = model_and_targets("logistic")
    with pytest.raises(ValueError, match="groups"):
        model.fit(X, y, groups=ids)
    assert not hasattr(model, "coef_")


def test_numbers_and_their_texts_are_different_persons():
    with pytest.raises(ValueError, match="order"):
        Persons.of([1, "1"], np.zeros((2, 1)))
    assert Persons.of([True, 2, 3.5], np.zeros((3, 1))).n == 3


def test_pandas_ids():
    pd = pytest.importorskip("pandas")
    model, y = model_and_targets("logistic")
    expected = model.fit(X, y, groups=IDS).coef_
    texts = np.array([f"{i:03d}" for i in IDS])
    for ids in (
        pd.Series(IDS, index=IDS),
        pd.Series(texts),
        pd.Series(texts).astype("category"),
        pd.Series(IDS, dtype="Int64"),
        pd.Series(texts, dtype="string"),
    ):
        assert np.array_equal(model.fit(X, y, groups=ids).coef_, expected)
    missing = pd.Series([*texts[:-1], None], dtype="string")
    for ids in (missing, missing.astype("category"), pd.Series([*IDS[:-1], None], dtype="Int64")):
        with pytest.raises(ValueError, match="missing"):
            model.fit(X, y, groups=ids)


def test_ids_are_not_kept():
    model, y = model_and_targets("logistic")
    ids = np.array([f"Ms. {i:06d}" for i in IDS])
    model.fit(X, y, groups=ids)
    text = repr(vars(model)) + repr(model) + str(model.privacy_)
    assert "Ms." not in text and b"Ms." not in pickle.dumps(model)
    assert model.privacy_.adjacency == "replace all rows of one person"


def test_shares_of_weights_add_up_to_at_most_1():
    for m in [*range(1, 300), 999, 12_345, 10**6]:
        weight = Persons.of(np.zeros(m), np.zeros((m, 1))).weight[0]
        assert weight * m <= 1 and weight * m > 1 - m * 2.0**-52 and (m > 1 or weight == 1)


def test_a_ledger_of_records_does_not_pay_for_persons(tmp_path):
    model, y = model_and_targets("logistic")
    records = PrivacyLedger(tmp_path / "records", epsilon=2.0)
    with pytest.raises(ValueError, match="replace all rows of one person"):
        model.set_params(ledger=records).fit("not even records", None, groups="no ids")
    assert records.remaining() == (2.0, 0.0)
    persons = PrivacyLedger(
        tmp_path / "persons", epsilon=2.0, adjacency="replace all rows of one person"
    )
    model.set_params(ledger=persons, random_state=None, data_norm="auto").fit(X, y, groups=IDS)
    assert persons.remaining() == (1.0, 0.0)
    assert {part.adjacency for part in model.privacy_.parts} == {"replace all rows of one person"}
    with pytest.raises(ValueError, match="replace one record"):
        model.fit(X, y)
