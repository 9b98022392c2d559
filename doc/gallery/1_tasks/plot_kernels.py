"""
Kernels: how wide, and how many features?
=========================================

A kernel classifier keeps training records inside of it, so it cannot be released. Random Fourier
features approximate the kernel without looking at a record; a private *linear* classifier on them
is a private kernel classifier. Two choices remain, the width of the kernel and the number of
features.
"""

# %%
# A problem that no line solves
# -----------------------------
#
# Records in a square, labelled by a chequerboard, one label in ten wrong. ``RBFSampler`` draws
# its features at random; ``gamma`` is a number of ours. ``NormClipper`` states the bound on the
# rows that the noise is made for: a row of random features has length 1 on average, and never
# more than :math:`\sqrt2`.

# sphinx_gallery_thumbnail_path = "images/thumbnails/kernels.png"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline

from dpselect import DPLogisticRegression, StabilityGridSearchCV
from dpselect.preprocessing import BoundedScaler, NormClipper

rng = np.random.default_rng(0)


def draw(n):
    X = rng.uniform(0, 1, size=(n, 2))
    truth = (np.floor(3 * X).sum(axis=1) % 2).astype(int)
    return X, np.where(rng.random(n) < 0.1, 1 - truth, truth)


X, y = draw(10_000)
X_new, y_new = draw(5_000)

model = make_pipeline(
    BoundedScaler((0, 1)),
    RBFSampler(n_components=100),
    NormClipper(bound=1.0),
    DPLogisticRegression(classes=[0, 1], data_norm=1.0),
)

# %%
# Three widths
# ------------
#
# The same data, the same :math:`\varepsilon`, three kernels. A wide kernel (small ``gamma``) is
# too smooth for the squares. A narrow one could follow them, but needs more features than it
# has, and each carries noise.

gammas = [0.5, 5.0, 100.0]
x1, x2 = np.meshgrid(*2 * [np.linspace(0.005, 0.995, 100)])
figure, axes = plt.subplots(1, 3, figsize=(10, 3.7), sharey=True, layout="constrained")
for ax, gamma in zip(axes, gammas):
    model.set_params(rbfsampler__gamma=gamma, dplogisticregression__epsilon=1.0).fit(X, y)
    probability = model.predict_proba(np.column_stack([x1.ravel(), x2.ravel()]))[:, 1]
    image = ax.pcolormesh(x1, x2, probability.reshape(x1.shape), cmap="RdBu", vmin=0, vmax=1)
    ax.set(
        title=f"gamma = {gamma:g}: {model.score(X_new, y_new):.0%} right",
        aspect="equal",
        xticks=[0, 1 / 3, 2 / 3, 1],
        yticks=[0, 1 / 3, 2 / 3, 1],
    )
    ax.set_xticklabels(["0", "1/3", "2/3", "1"])
    ax.set_yticklabels(["0", "1/3", "2/3", "1"])
figure.colorbar(image, ax=axes, label="released probability of label 1", shrink=0.8)
plt.show()

# %%
# A fit like this, repeated for each width, would cost as many times :math:`\varepsilon`. The
# search trains one model only. It compares the *least risk* that each width could reach without
# noise: one record hardly moves such a number, so a tenth of :math:`\varepsilon` is enough for
# the comparison.

grid = {"rbfsampler__gamma": [1.0, 0.1, 0.3, 3.0, 10.0, 30.0]}
search = StabilityGridSearchCV(model, grid, epsilon=1.0)
print(search.fit(X, y).privacy_)
print(search.plan_.strategy, "chose", search.best_params_)

# %%
# What the search adds to the risk, as a forecast of the noise that the model will get, is a
# public number. It keeps the search from a kernel that only looks good before noise is added.
#
# How many features
# -----------------
#
# More features approximate the kernel better, and have more noise: with little noise many are
# best, with much noise few. Below, the share of right answers on new records for three privacy
# losses, and without noise; each point is the mean of four fits. No records are needed to find
# a number that is safe: up to the dotted lines, :math:`n\varepsilon/D` is thirty or more, with
# which ``plan`` expects four fifths of the gain in AUC to be kept.

numbers = [10, 20, 40, 80, 160]
right = {epsilon: [] for epsilon in (0.06, 0.3, 2.0, np.inf)}
for epsilon, shares in right.items():
    for number in numbers:
        model.set_params(rbfsampler__gamma=5.0, rbfsampler__n_components=number)
        model.set_params(dplogisticregression__epsilon=epsilon)
        alpha = 1e-6 if epsilon == np.inf else "auto"
        model.set_params(dplogisticregression__alpha=alpha)
        shares.append(np.mean([model.fit(X, y).score(X_new, y_new) for _ in range(4)]))

figure, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
for (epsilon, shares), colour in zip(right.items(), ("C0", "C1", "C2", "k")):
    name = "no noise" if epsilon == np.inf else rf"$\varepsilon = {epsilon:g}$"
    ax.plot(numbers, shares, "o-", color=colour, ms=4, label=name)
    limit = len(X) * epsilon / 30
    if numbers[0] < limit < numbers[-1]:
        ax.axvline(limit, color=colour, ls=":", lw=1)
ax.axhline(0.9, color="0.6", lw=1)
ax.text(9.2, 0.906, "nine labels in ten are right", color="0.4", fontsize="small")
ax.set(
    xscale="log",
    xlabel="number $D$ of random features",
    ylabel="share of right answers",
    ylim=(0.4, 0.95),
)
ax.set_xticks(numbers, [str(number) for number in numbers])
ax.minorticks_off()
ax.legend(loc="lower left", fontsize="small", ncols=2)
plt.show()

# %%
# The features are drawn without the records and are public. What is drawn in the classifier is
# not: its noise has no seed here, so the numbers of this page change a little each time it is
# built.
