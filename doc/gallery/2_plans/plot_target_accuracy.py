"""
Ridge regression to a target accuracy
=====================================

Often it is not the privacy loss that is fixed in advance but the accuracy: a forecast that is
off by more is of no use. ``AccuracyFirstSearchCV`` takes the accuracy and finds the smallest
epsilon for it (Ligett, Neel, Roth, Waggoner and Wu, *Accuracy First*, NeurIPS 2017). We ask what
the ways to find it would cost, let two of them run, and look at what they release.
"""

# %%
# A question, and what an answer would cost
# -----------------------------------------
#
# A hundred thousand records of twenty categories in one-hot columns, and a target between -1 and 1.
# The ridge estimator minimises a regularised squared error on them. We want a model whose own
# error is at most 0.005 above that minimum, except with probability 0.1. The plan needs no
# data: only the numbers that were just given.

# sphinx_gallery_thumbnail_path = "images/thumbnails/target_accuracy.png"

import matplotlib.pyplot as plt
import numpy as np

from dpselect import AccuracyFirstSearchCV, DPRidge

rng = np.random.default_rng(0)
n, p = 100_000, 20
category = rng.integers(p, size=n)
X = np.eye(p)[category]
y = np.clip(np.linspace(-0.9, 0.9, p)[category] + 0.2 * rng.normal(size=n), -1, 1)

model = DPRidge(alpha=0.01, fit_intercept=False, target_range=(-1, 1))
grid = {"epsilon": np.geomspace(1e-3, 100, 500)}
plan = AccuracyFirstSearchCV(model, grid, target=0.005).plan(n, p)
print(plan)

# %%
# Most of the loss of the method that the article proposes, ``above_threshold``, pays for
# *testing* models. Doubling tests fewer of them, but pays for each. Two methods of this library
# pay much less: ``predict_verify`` asks one question, and ``certified`` none, since its noise is
# small enough whatever the records are. The certified loss is differential privacy in the plain
# sense; the others are *ex-post*: a bound for the outcome that came out, and before the search only
# a forecast.

served = sorted((m for m in plan.methods if m.total < np.inf), key=lambda m: m.total)
figure, ax = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
names = [m.method for m in served]
ax.barh(names, [m.total for m in served], color="C1", label="testing")
ax.barh(names, [m.generating for m in served], color="C0", label="generating")
ax.set(xlabel=r"planned privacy loss $\varepsilon$")
ax.invert_yaxis()
ax.legend(loc="upper right")
plt.show()

# %%
# Two searches
# ------------
#
# The one that the plan prefers, and the article's.

for method in ("certified", "above_threshold"):
    search = AccuracyFirstSearchCV(model, grid, target=0.005, method=method).fit(X, y)
    print(f"{method}: best_epsilon_ {search.best_epsilon_:.3g}")
    print(search.privacy_, "\n")

# %%
# What is released
# ----------------
#
# ``above_threshold`` reads models along a *noise-reduction path*: it starts with a lot of noise and
# takes some of it away at each level, so that all models up to the last one together cost no more
# than that one. They are in ``path_``. The true coefficients lie evenly between -0.75 and 0.75 after
# regularisation.

path = search.path_
figure, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
for j in range(p):
    colour = plt.get_cmap("viridis")(j / (p - 1))
    ax.step(path["epsilon"], path["model"][:, j], where="post", linewidth=1, color=colour)
ax.axvline(search.best_epsilon_, color="k", linestyle=":", label="accurate enough")
ax.set(xscale="log", xlabel=r"level $\varepsilon$ along the path", ylabel="released coefficients")
ax.legend(loc="upper left")
plt.show()

# %%
# If nothing in the grid had been accurate enough, the search would have raised
# ``AccuracyNotReachedError`` with the loss that it had spent. The article releases the exact
# minimiser in that case; no finite epsilon covers that.
