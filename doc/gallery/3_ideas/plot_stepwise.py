"""
Stepwise selection: what a holdout set is worth after many questions
====================================================================

A holdout set tells whether a model is as good as it looks, once. In stepwise regression it is
asked hundreds of times which column to add next, and after that it agrees with everything. We
watch it happen, and ask the same questions through ``ThresholdoutFeatureSelector``, which answers
with differential privacy for the holdout records.
"""

# %%
# Five columns that matter, and sixty that do not
# -----------------------------------------------
#
# A thousand records to train on, a thousand to judge by, and twenty thousand that nobody looks
# at until the end.

# sphinx_gallery_thumbnail_path = "images/thumbnails/stepwise.png"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from dpselect import ThresholdoutFeatureSelector

rng = np.random.default_rng(0)
n, n_fresh, n_signal, n_columns, n_steps = 1000, 20_000, 5, 65, 15
y = rng.integers(2, size=2 * n + n_fresh)
X = rng.normal(size=(len(y), n_columns))
X[:, :n_signal] += 0.3 * y[:, None]
train, held_out, fresh = np.arange(n), np.arange(n, 2 * n), np.arange(2 * n, len(y))
model = LogisticRegression()


def accuracies(columns):
    """Accuracy on the training, holdout and fresh records of the model with these columns."""
    fitted = model.fit(X[np.ix_(train, columns)], y[train])
    return [fitted.score(X[np.ix_(part, columns)], y[part]) for part in (train, held_out, fresh)]


# %%
# The naive way
# -------------
#
# In each step, every column that is left is tried; the one whose model does best on the holdout
# set stays.


def holdout_accuracy(columns):
    fitted = model.fit(X[np.ix_(train, columns)], y[train])
    return fitted.score(X[np.ix_(held_out, columns)], y[held_out])


naive = []
for _ in range(n_steps):
    left = [column for column in range(n_columns) if column not in naive]
    naive.append(max(left, key=lambda column: holdout_accuracy([*naive, column])))

# %%
# Through Thresholdout
# --------------------
#
# The selector asks for the same improvements. While training and holdout records agree about
# one, up to a noisy threshold, the answer is the training value; only else it comes from the
# holdout records, with noise, and uses one of ten such answers. What the holdout records may
# tell in all is known before.

selector = ThresholdoutFeatureSelector(
    model,
    n_features_to_select=n_steps,
    threshold=0.25,
    noise_rate=0.01,
    budget=10,
    cv=[(train, held_out)],
    public_splits=True,
).fit(X[: 2 * n], y[: 2 * n])
print(selector.privacy_)
print("answers that came from the holdout records:", selector.uses_)

# %%
# Step by step
# ------------
#
# For each selection the accuracy of the model after each step, on the records it was trained
# on, on the holdout set, and on fresh records. (The exact holdout accuracies are shown because
# these records are synthetic.)

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, order, title in zip(axes, (naive, list(selector.order_)), ("naive", "Thresholdout")):
    curves = np.array([accuracies(order[: k + 1]) for k in range(len(order))])
    steps = np.arange(1, len(order) + 1)
    styles = {"training": "C0--", "holdout": "C1-", "fresh": "k-"}
    for curve, (name, style) in zip(curves.T, styles.items()):
        ax.plot(steps, curve, style, label=name)
    ax.fill_between(steps, curves[:, 1], curves[:, 2], color="C1", alpha=0.15)
    signal = np.array(order) < n_signal
    ax.plot(steps[signal], curves[signal, 2], "ko", ms=5, label="a column that matters")
    ax.set(
        title=f"{title}: {signal.sum()} of {n_signal} found", xlabel="columns chosen", xticks=steps[::2]
    )
    print(f"{title}: holdout {curves[-1, 1]:.3f}, fresh {curves[-1, 2]:.3f}")
axes[0].set(ylabel="share of right answers")
axes[1].legend(loc="lower right", fontsize="small")
plt.show()

# %%
# After the naive selection the holdout accuracy is a score that was maximised, and is too kind:
# the orange gap. After the other one it is an honest score of whatever was selected, up to the
# chance in a thousand records. What it is *not* is a better selection: with a thousand holdout
# records and this epsilon the threshold must be so high that the holdout set hardly ever
# speaks, and the selection is about that of the training records.
# :doc:`/mechanisms/reusable_holdout` measures both, with more records too, and says how many it
# takes for more.
