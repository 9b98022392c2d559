"""Models of all kinds, and rows and tables in and out of their bounds."""

import numpy as np
import pandas as pd

from dpselect import DPPoissonRegressor

from ..glue import cases

POISSON = {
    f"poisson {bound}": DPPoissonRegressor(
        target_bound=bound, data_norm=0.8, data_norm_l1=1.0, epsilon=epsilon
    )
    for bound, epsilon in ((3.0, 1.0), (0.01, 1e-4))
}
# what is exported knows no epsilon
MODELS = (
    cases.every_pair(
        {name: model for name, model in cases.VARIANTS.items() if name not in cases.DENSITY},
        lambda model: {"class": type(model).__name__, **model.get_params(), "epsilon": None},
    )
    | POISSON
)
X, LONG = cases.rows(), np.geomspace(1e-200, 1e100, 30)[:, np.newaxis]
# short, long, none, and very long and short ones
ROWS = np.vstack([X, 100 * X[:20], 0 * X[:1], LONG * X[:30]])

SCHEMA = {
    "age": (18, 90),
    "job": ["farmer", " clerk", "other"],
    "income": {"bounds": (0, 1e6), "transform": "log1p", "missing": True},
    "debt": {"bounds": (-1e4, 1e4), "transform": "arcsinh", "missing": True, "fill": 0},
    "grade": {"categories": ["1", "2", "x"], "missing": True},
    "code": {"categories": [0, 1, 2.5], "unknown": True, "missing": True},
    "smoker": [False, True],
    "hours": {"bounds": (0, 24), "missing": True},
    "kind": {"categories": ["a", "b", "nil"], "unknown": True},
    "month": {"bounds": (1, 13), "periodic": True, "missing": True},
    "angle": {"bounds": (-180, 180), "periodic": True, "missing": True, "fill": 90},
}
SETTINGS = [
    {},
    {"expansion": "linear", "categories": "simplex"},
    {"expansion": 3, "categories": "onehot", "sparse_output": True},
    {
        "expansion": 2,
        "cut_points": {"age": [30, 50], "hours": [3, 8], "income": [1e3, 1e5]},
        "pairs": [
            ("income", "debt"),
            ("age", "hours"),
            ("job", "hours"),
            ("kind", "income"),
            ("month", "angle"),
        ],
        "n_fourier": 7,
    },
    {
        "pairs": [
            ("debt", "code"),
            ("smoker", "grade"),
            ("grade", "kind"),
            ("job", "month"),
            ("angle", "age"),
        ],
        "categories": "onehot",
        "sparse_output": True,
    },
    {
        "columns": ["debt", "kind", "age", "code"],
        "pairs": [("age", "kind")],
        "cut_points": {"age": [30]},
    },
    {"categories": "simplex", "cut_points": {"debt": [0]}, "expansion": 5},
]


def table(n=300, seed=0):
    """Records in and out of their bounds, with gaps, and categories in every spelling."""
    rng = np.random.default_rng(seed)

    def drawn(*values):
        return rng.choice(np.array(values, dtype=object), n)

    def gaps(values):
        return np.where(rng.random(n) < 0.2, np.nan, values)

    return pd.DataFrame(
        {
            "age": rng.integers(0, 120, n),
            "job": drawn("farmer", " clerk ", "clerk", "pirate", "?", None),
            "income": gaps(rng.lognormal(10, 3, n) - 5),
            "debt": gaps(rng.normal(0, 1e4, n)),
            "grade": drawn(
                1, 2.0, "1", "2", "1.0", "x", None, np.nan, "NA", "na", "zzz", "", True, "TRUE"
            ),
            "code": rng.choice([0.0, -0.0, 1, 2.5, np.nan, 7], n),
            "smoker": rng.choice([True, False], n),
            "hours": drawn(None, 3, 4.5, 30, -1, "8"),
            "kind": pd.Categorical(drawn("a", "b", "z", None)),
            "month": gaps(rng.uniform(0, 14, n)),
            "angle": gaps(rng.choice([-190, -180, 0, 45, 180, 200], n)),
        }
    )
