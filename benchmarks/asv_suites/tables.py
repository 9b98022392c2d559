"""Roads to a model of a table: numbers and categories, long lists, other containers, one row."""

import numpy as np

from dpselect import DPHistogramDensity, DPLogisticRegression, StabilityGridSearchCV
from dpselect.preprocessing import tabular_pipeline

from ._records import Suite, uniform

N = 50_000
LISTS = {"sex": 2, "job": 12, "region": 16, "school": 6, "state": 4}
NUMBERS = {f"c{i}": (0.0, 1.0) for i in range(7)} | {"c7": {"bounds": (0.0, 1.0), "missing": True}}


def table(lists, container="texts"):
    """Return a dataframe, its schema, and labels."""
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame(uniform(N, len(NUMBERS)), columns=list(NUMBERS))
    X.loc[rng.random(N) < 0.1, "c7"] = np.nan
    schema = dict(NUMBERS)
    for name, k in lists.items():
        schema[name] = [f"{name}{i}" for i in range(k)]
        column = pd.Categorical.from_codes(rng.integers(0, k, N), schema[name])
        X[name] = column if container == "categories" else column.astype(object)
    return X, schema, (X["c0"] > 0.3).to_numpy().astype(int)


def pipeline(schema):
    return tabular_pipeline(schema, DPLogisticRegression(classes=[0, 1]))


class Usual(Suite):
    """Numbers and short lists."""

    params = ["texts", "categories"]
    param_names = ["container"]

    def setup(self, container):
        self.X, self.schema, self.y = table(LISTS, container)
        self.fitted = pipeline(self.schema).fit(self.X, self.y)
        self.plain, self.row = self.fitted.to_sklearn(), self.X[:1]

    def time_fit(self, container):
        pipeline(self.schema).fit(self.X, self.y)

    def peakmem_fit(self, container):
        pipeline(self.schema).fit(self.X, self.y)

    def time_search_of_one(self, container):
        StabilityGridSearchCV(pipeline(self.schema), {}).fit(self.X, self.y)

    def time_predict(self, container):
        self.fitted.predict(self.X)

    def time_predict_one_row(self, container):
        self.fitted.predict(self.row)

    def time_predict_by_sklearn(self, container):
        self.plain.predict(self.X)


class Levels(Suite):
    """One long list."""

    params = [1_000, 10_000]
    param_names = ["levels"]

    def setup(self, levels):
        self.X, self.schema, self.y = table({"town": levels})
        self.fitted = pipeline(self.schema).fit(self.X, self.y)

    def time_fit(self, levels):
        pipeline(self.schema).fit(self.X, self.y)

    def peakmem_fit(self, levels):
        pipeline(self.schema).fit(self.X, self.y)

    def time_predict(self, levels):
        self.fitted.predict(self.X)


class OnDask(Suite):
    """A dataframe of Dask, in this process."""

    params = ["texts", "categories"]
    param_names = ["container"]

    def setup(self, container):
        try:
            import dask.dataframe as dd
        except ImportError:
            raise NotImplementedError("needs dask") from None
        import pandas as pd

        X, self.schema, y = table(LISTS, container)
        X = X if container == "categories" else X.astype(dict.fromkeys(LISTS, str))
        self.X, self.y = dd.from_pandas(X, npartitions=4), dd.from_pandas(pd.Series(y), npartitions=4)

    def time_fit(self, container):
        import dask

        with dask.config.set(scheduler="synchronous"):
            pipeline(self.schema).fit(self.X, self.y)


class Command(Suite):
    """A whole fit from a file, without the start of Python."""

    def setup(self):
        import json
        import tempfile
        from pathlib import Path

        X, schema, y = table(LISTS)
        self.folder = tempfile.TemporaryDirectory()
        folder = Path(self.folder.name)
        X.assign(y=y).to_csv(folder / "table.csv", index=False)
        (folder / "schema.json").write_text(json.dumps(schema | {"y": [0, 1]}))
        self.arguments = [
            *("fit", str(folder / "table.csv"), "--schema", str(folder / "schema.json")),
            *("--target", "y", "--epsilon", "1"),
        ]

    def teardown(self):
        self.folder.cleanup()

    def time_fit(self):
        from contextlib import redirect_stderr, redirect_stdout
        from io import StringIO

        from dpselect.__main__ import main

        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            main(self.arguments)


class OneColumn(Suite):
    """A histogram of one column."""

    def setup(self):
        self.X = uniform(200_000, 1)
        self.density = DPHistogramDensity(bin_width=0.01, bounds=(0, 1))

    def time_fit(self):
        self.density.fit(self.X)
