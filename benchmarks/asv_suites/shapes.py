"""Fits of every shape that a user meets: small, wide, sparse, in other containers, in chunks."""

import time

import numpy as np

from dpselect import DPLinearSVC, DPLogisticRegression, DPRidge, StabilityGridSearchCV
from dpselect.preprocessing import tabular_pipeline

from ._records import Suite, labelled, sparse_labelled, uniform, with_targets

LOGISTIC = DPLogisticRegression(classes=[0, 1])


class Small(Suite):
    """Where checks of parameters and rows take most of the time."""

    params = [["logistic", "svc", "ridge", "search"], [(200, 5), (2_000, 10)]]
    param_names = ["model", "shape"]

    def setup(self, model, shape):
        self.model = {
            "logistic": LOGISTIC,
            "svc": DPLinearSVC(classes=[0, 1]),
            "ridge": DPRidge(norm="l2", target_range=(0, 1)),
            "search": StabilityGridSearchCV(LOGISTIC, {"alpha": [0.01, 0.1, 1.0]}),
        }[model]
        self.X, self.y = labelled(*shape)

    def time_fit(self, *_):
        self.model.fit(self.X, self.y)


class Wide(Suite):
    """Many columns, with a large alpha, where no curvature is formed, and a small one."""

    params = [[(5_000, 2_000)], ["auto", 1e-4]]
    param_names = ["shape", "alpha"]

    def setup(self, shape, alpha):
        self.model = DPLogisticRegression(classes=[0, 1], alpha=alpha)
        self.X, self.y = labelled(*shape)

    def time_fit(self, *_):
        self.model.fit(self.X, self.y)

    def peakmem_fit(self, *_):
        self.model.fit(self.X, self.y)


class WideRidge(Suite):
    """One alpha of ridge regression of many columns."""

    params = ["l2", "l1"]
    param_names = ["norm"]

    def setup(self, norm):
        self.model = DPRidge(
            norm=norm, alpha=0.01, target_range=(-1, 1), data_norm_l1=30.0 if norm == "l1" else None
        )
        self.X, self.y = with_targets(5_000, 1_000)

    def time_fit(self, norm):
        self.model.fit(self.X, self.y)


class Sparse(Suite):
    """Rows of 100 entries, which no pass makes dense."""

    params = [1_000, 50_000]
    param_names = ["columns"]

    def setup(self, columns):
        self.X, self.y = sparse_labelled(20_000, columns)
        self.fitted = DPLogisticRegression(classes=[0, 1]).fit(self.X, self.y)

    def time_fit(self, columns):
        LOGISTIC.fit(self.X, self.y)

    def peakmem_fit(self, columns):
        LOGISTIC.fit(self.X, self.y)

    def time_predict(self, columns):
        self.fitted.predict(self.X)


class Containers(Suite):
    """Numbers that become float64 block by block."""

    params = [["float64", "float32", "int64"], ["logistic", "ridge"]]
    param_names = ["container", "model"]

    def setup(self, container, model):
        X, self.y = labelled(100_000, 50)
        self.X = (100 * X).astype(container) if container == "int64" else X.astype(container)
        self.model = LOGISTIC if model == "logistic" else DPRidge(norm="l2", target_range=(0, 1))

    def time_fit(self, *_):
        self.model.fit(self.X, self.y)

    def peakmem_fit(self, *_):
        self.model.fit(self.X, self.y)


class Encoded(Suite):
    """Behind an encoder that makes several columns of each."""

    params = ["logistic", "ridge"]
    param_names = ["model"]

    def setup(self, model):
        import pandas as pd

        names = [f"c{i}" for i in range(10)]
        self.X = pd.DataFrame(uniform(50_000, 10), columns=names)
        self.y = np.arange(50_000) % 2
        last = LOGISTIC if model == "logistic" else DPRidge(target_range=(0, 1))
        self.model = tabular_pipeline(dict.fromkeys(names, (0.0, 1.0)), last)

    def time_fit(self, model):
        self.model.fit(self.X, self.y)

    def peakmem_fit(self, model):
        self.model.fit(self.X, self.y)


class Threads(Suite):
    """The passes of a search, shared by threads: by the clock."""

    params = [1, 2]
    param_names = ["n_jobs"]
    timer = time.perf_counter

    def setup(self, n_jobs):
        self.search = StabilityGridSearchCV(
            LOGISTIC, {"alpha": np.geomspace(1e-4, 1, 10)}, strategy="stability", n_jobs=n_jobs
        )
        self.X, self.y = labelled(100_000, 20)

    def time_fit(self, n_jobs):
        self.search.fit(self.X, self.y)


class Chunks(Suite):
    """A Dask array, in the threads of this process."""

    params = [["logistic", "ridge"], [4, 16]]
    param_names = ["model", "chunks"]

    def setup(self, model, chunks):
        try:
            import dask.array as da
        except ImportError:
            raise NotImplementedError("needs dask") from None
        n = 100_000
        X, y = labelled(n, 20)
        self.X = da.from_array(X, chunks=(n // chunks, 20))
        self.y = da.from_array(y, chunks=n // chunks)
        self.model = LOGISTIC if model == "logistic" else DPRidge(norm="l2", target_range=(0, 1))

    def time_fit(self, *_):
        self.model.fit(self.X, self.y)


class Plans(Suite):
    """What is decided before any record is read."""

    params = ["auto", "stability", "100,000 columns"]
    param_names = ["of"]

    def setup(self, of):
        strategy = "auto" if of == "auto" else "stability"
        self.columns, k = (100_000, 10) if of == "100,000 columns" else (20, 200)
        self.search = StabilityGridSearchCV(
            LOGISTIC, {"alpha": np.geomspace(1e-4, 1, k)}, strategy=strategy
        )

    def time_plan(self, of):
        self.search.plan(1_000_000, self.columns)
