"""Bad input for the preprocessing steps, and for the check of a Pipeline."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dpselect import DPRidge
from dpselect.preprocessing import (
    BoundedScaler,
    DPBoundsScaler,
    NormClipper,
    PublicSchema,
    TableEncoder,
    check_pipeline_privacy,
)

from .properties import attempt, cases, check_error, check_fit
from .values import changes, junk, tables

ROWS = np.random.default_rng(1).random((20, 2))


def transform(step):
    found = step.transform(ROWS[:, : step.n_features_in_])
    assert found.shape == (20, step.n_features_in_)
    return found


def within(step):
    found = transform(step)
    assert (abs(found) <= 1).all()
    return found


@cases(
    350,
    params=changes(
        bounds=(
            (0, 1),
            [(0, 1), (-1, 1)],
            np.array([0.0, 3.0]),
            (-1e308, 1e308),
            (0.0, 5e-324),
            (0, np.float16(3)),
            [(0, 1)],
            (-4e307, 4e307),
            (0, 10**400),
            ("0", "1"),
            (1e300, 2e300),
            {"a": (0, 1), "b": (0, 2)},
            {"a": (0, 1)},
            {},
        )
    ),
    X=tables(),
    again=st.booleans(),
)
def test_bounded_scaler(params, X, again):
    return check_fit(BoundedScaler((0, 1)), params, (X,), good=(ROWS,) if again else None, use=within)


@cases(
    350,
    params=changes(
        norm=("l1", "l2"),
        bound=(1.0, np.float16(0.3), np.int8(3), Fraction(1, 3), 1e-300, 5e-324, 1e308),
    ),
    X=tables(),
    again=st.booleans(),
)
def test_norm_clipper(params, X, again):
    return check_fit(NormClipper(), params, (X,), good=(ROWS,) if again else None, use=transform)


@cases(
    350,
    params=changes(
        epsilon=(1.0, np.float16(1e-5), np.float32(3.0), Fraction(1, 3), 1e-9, float("inf")),
        tail=(0.1, np.float16(0.1), Fraction(1, 10), 0.49),
        random_state=(0, None),
    ),
    X=tables(),
    again=st.booleans(),
)
def test_private_bounds(params, X, again):
    return check_fit(
        DPBoundsScaler(random_state=0),
        params,
        (X,),
        good=(ROWS,) if again else None,
        use=within,
        loss=lambda step: float(step.epsilon),
    )


BOTH = {"a": {"bounds": (0, 1), "missing": True}, "b": {"bounds": (-1, 1), "transform": "arcsinh"}}
ENTRIES = (
    (0, 1),
    [0.0, 5e-324],
    (-1e308, 1e308),
    (0, 10**400),
    [1, 2, 3],
    ["0", "1"],
    ["a", "a"],
    ["a", 1],
    bool,
    "bool",
    np.dtype(bool),
    None,
    {},
    {"bounds": 3},
    {"bounds": (0, 1), "transform": "log1p"},
    {"bounds": (-3, 1), "transform": "log1p"},
    {"bounds": (0, 1), "transform": ["log1p"]},
    {"bounds": (0, 1), "missing": True, "fill": 0.5},
    {"bounds": (0, 1), "missing": 1, "fill": "x"},
    {"bounds": (0, 1), "categories": ["a", "b"]},
    {"categories": [0, 1.0, True]},
    {"categories": ["a", None]},
    {"categories": ["a"], "missing": True},
    {"categories": 5},
    {"categories": [0, "b"], "unknown": True, "unit": "m"},
    {"bounds": (0, 1), "unit": 5},
)


def encode(step):
    found = step.transform(ROWS[:, : step.n_features_in_])
    assert found.shape == (20, len(step.get_feature_names_out()))
    lengths = np.linalg.norm(found.toarray() if step.sparse_output else found, axis=1)
    assert (lengths <= step.max_norm("l2") * (1 + 1e-12)).all()
    return found


@cases(
    500,
    params=changes(
        schema=(BOTH, (0, 1), ["0", "1"], {"b": (0, 1), "a": ["0", "1"]}, PublicSchema(BOTH)),
        expansion=("linear", 1, np.int8(3), 5, "auto", 2.0, 0, -1, True),
        n_epsilon=(None, 100, np.float32(1e4), float("inf"), 0, -1.0, float("nan"), "1", True),
        class_share=(None, 0.1, np.float32(0.9), 0, 1, -0.5, float("nan"), "1", True),
        columns=(None, "first", ["a"], ("b", "a"), [], ["a", "a"], ["c"], "a", 5, [["a"]], [{}]),
        categories=("simplex", "onehot", "ordinal"),
        cut_points=(
            None,
            {},
            {"a": [0.5]},
            {"b": (-0.5, 0)},
            {"a": [0, 1]},
            {"a": [0.7, 0.3]},
            {"c": [1]},
            5,
        ),
        pairs=(
            (),
            [("a", "b")],
            "auto",
            [("a", "a")],
            [("a", "b"), ("b", "a")],
            [("a", "c")],
            ["ab"],
            [("a",)],
            [([], {})],
            5,
        ),
        n_fourier=(0, 3, -1, 2.0),
        gamma=(1.0, 1e-3, 0, "scale", float("inf")),
        random_state=(0, 7, -1, None, np.random),
        sparse_output=(False, True, "no"),
    ),
    X=tables(),
    again=st.booleans(),
)
def test_table_encoder(params, X, again):
    good = (ROWS,) if again else None
    return check_fit(TableEncoder(BOTH), params, (X,), good=good, use=encode)


@cases(
    500,
    entries=st.lists(st.one_of(st.sampled_from(ENTRIES), st.sampled_from(ENTRIES), junk()), max_size=3),
    whole=st.one_of(st.none(), st.none(), st.none(), junk()),
)
def test_public_schema(entries, whole):
    given = dict(zip("abc", entries)) if whole is None else whole
    found = attempt(lambda: PublicSchema(given))
    if found.error is not None:
        check_error(found.error, ("schema",))
        return "error"
    assert PublicSchema(found.value.to_dict()) == found.value == PublicSchema(found.value.columns)
    return "result"


@cases(
    150,
    step=st.sampled_from(
        [
            BoundedScaler((0, 1)).fit(ROWS),
            NormClipper().fit(ROWS),
            NormClipper("l1", 0.5).fit(ROWS),
            DPBoundsScaler().fit(ROWS),
            TableEncoder(BOTH).fit(ROWS),
            TableEncoder(["0", "1"]).fit(ROWS),
        ]
    ),
    X=tables(),
)
def test_transform(step, X):
    found = attempt(lambda: step.transform(X))
    if found.error is None:
        values = found.value.toarray() if hasattr(found.value, "toarray") else found.value
        assert np.isfinite(values).all()
        return "result"
    check_error(found.error, ())
    return "error"


STEPS = [
    BoundedScaler((0, 1)),
    StandardScaler(),
    RBFSampler(gamma=1.0),
    RBFSampler(gamma="scale"),
    "passthrough",
    OneHotEncoder(),
    OneHotEncoder(categories=[[0, 1]]),
    DPBoundsScaler(),
    DPRidge(target_range=(-1, 1)),
    BoundedScaler,
    None,
    FeatureUnion([("a", NormClipper())]),
    FeatureUnion([("a", 5)]),
    FeatureUnion([]),
    FeatureUnion(5),
    ColumnTransformer([("a", BoundedScaler((0, 1)), [0])], sparse_threshold=0),
    ColumnTransformer([("a", BoundedScaler((0, 1)))]),
    ColumnTransformer(5),
    ColumnTransformer([]),
    ColumnTransformer([("a", BoundedScaler((0, 1)), lambda X: [0])]),
    Pipeline([]),
    Pipeline(5),
    Pipeline([("a", BoundedScaler((0, 1)))]),
    Pipeline([5]),
    Pipeline([("a",)]),
]


@cases(
    250,
    steps=st.lists(st.one_of(st.sampled_from(STEPS), st.sampled_from(STEPS), junk()), max_size=4),
    whole=st.one_of(st.none(), st.none(), st.none(), junk(), st.sampled_from(STEPS)),
    trusted=st.one_of(
        st.just(()), st.just(["0"]), st.just({StandardScaler}), junk(), st.just(np.array(["0"]))
    ),
)
def test_pipeline_check(steps, whole, trusted):
    pipeline = whole if whole is not None else Pipeline([(str(i), step) for i, step in enumerate(steps)])
    found = attempt(lambda: check_pipeline_privacy(pipeline, trusted))
    if found.error is None:
        assert found.value is None
        return "result"
    check_error(found.error, ("trusted_steps", "pipeline", "Step", "steps"))
    return "error"
