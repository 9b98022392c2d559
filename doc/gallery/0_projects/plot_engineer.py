"""
An engineer: a program with GridSearchCV, and Parquet
=====================================================

A program reads Parquet files, tunes a pipeline with ``GridSearchCV`` and is to become private. We keep
its shape: a pipeline, a grid, a search. What its steps learned from the records a schema says, and what
it printed of its scores an evaluation says.
"""

# %%
# The program as it is
# --------------------
#
# Four Parquet files with invented records; the program reads them at once.

# sphinx_gallery_thumbnail_path = "images/thumbnails/engineer.png"

import os
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dpselect import DPLogisticRegression, RowChunks, StabilityGridSearchCV
from dpselect.preprocessing import tabular_pipeline

folder = tempfile.TemporaryDirectory()


def file(i):
    return os.path.join(folder.name, f"part-{i}.parquet")


for i in range(4):
    rng = np.random.default_rng(i)
    part = pd.DataFrame(
        {
            "minutes": rng.gamma(2, 200, size=10_000),
            "calls": rng.poisson(3, size=10_000),
            "plan": rng.choice(["flat", "basic", "prepaid"], size=10_000),
        }
    )
    z = 0.4 * part["calls"] - 0.003 * part["minutes"] + (part["plan"] == "prepaid") - 1.5
    part["left"] = (rng.random(10_000) < 1 / (1 + np.exp(-z))).astype(int)
    part.to_parquet(file(i))

table = pd.concat([pd.read_parquet(file(i)) for i in range(4)], ignore_index=True)
X, y = table.drop(columns="left"), table["left"]
columns = make_column_transformer((StandardScaler(), ["minutes", "calls"]), (OneHotEncoder(), ["plan"]))
before = GridSearchCV(
    make_pipeline(columns, LogisticRegression()),
    {"logisticregression__C": [0.01, 0.1, 1.0]},
    scoring="roc_auc",
    cv=KFold(5),
).fit(X, y)
print(f"{before.best_params_}, AUC {before.best_score_:.3f}")

# %%
# The private program
# -------------------
#
# Bounds take the place of ``StandardScaler``, and lists of categories that of ``OneHotEncoder``. In the
# grid ``C`` becomes ``alpha``, about 1 / (n C): :doc:`/migrating`. There is no ``best_score_``, which
# was not paid for; ``evaluation`` sets records aside, at no more epsilon.

schema = {"minutes": (0, 2000), "calls": (0, 12), "plan": ["flat", "basic", "prepaid"]}
private = tabular_pipeline(schema, DPLogisticRegression(classes=[0, 1]))
search = StabilityGridSearchCV(
    private, {"model__alpha": [0.001, 0.01, 0.1]}, epsilon=1.0, evaluation=0.2
)
after = search.fit(X, y)
print(after.best_params_, after.evaluation_.metric("roc_auc"))
print(after.privacy_)

# %%
# Files that do not fit into memory
# ---------------------------------
#
# ``RowChunks`` reads one file at a time, in every pass. The lengths of the files are public. The model
# is the same kind of object as before.

lengths = [10_000] * 4
rows = RowChunks(lambda i: pd.read_parquet(file(i), columns=list(schema)), lengths, n_columns=3)
labels = RowChunks(lambda i: pd.read_parquet(file(i))["left"].to_numpy(), lengths, n_columns=1)
by_file = StabilityGridSearchCV(private, {"model__alpha": [0.001, 0.01, 0.1]}, epsilon=1.0)
by_file.fit(rows, labels)
print(by_file.best_params_, by_file.best_estimator_["model"].coef_.shape)

# %%
# What was lost?
# --------------
#
# Both programs predict much the same. The private one bends the line of the minutes, as its curves do.

new = X.sample(2000, random_state=0)
figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.scatter(before.predict_proba(new)[:, 1], after.predict_proba(new)[:, 1], s=4)
ax.plot([0, 1], [0, 1], color="0.5")
ax.set(xlabel="probability to leave, before", ylabel="with epsilon 1", aspect="equal")
plt.show()
folder.cleanup()

# %%
# What changed is a schema, a grid and a line for the evaluation. What a plain ``GridSearchCV`` around a
# private model would have cost, and other differences, are on the page :doc:`/migrating`.
