"""
A sensitive survey: which columns are worth their noise?
========================================================

In 1974 a magazine asked its readers about their marriages, and whether they had had an affair;
6,366 of the women's answers became the data of Fair, *A Theory of Extramarital Affairs* (1978). We
predict that last answer, with privacy: a model that is published shall tell next to nothing about
any one of them. We plan before the records are read, choose among four sets of columns, and look
at what the noise costs.
"""

# %%
# What is known without the records
# ---------------------------------
#
# The questionnaire is public: it gives the codes of all answers, hence bounds for the columns
# that have an order and the list of categories for the two that have none. Nothing in this
# block was read off the records.

# sphinx_gallery_thumbnail_path = "images/thumbnails/survey.png"

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures
from statsmodels.datasets import fair

from dpselect import DPLogisticRegression, StabilityGridSearchCV
from dpselect.preprocessing import BoundedScaler

bounds = {
    "rate_marriage": (1, 5),  # very poor to very good
    "age": (17.5, 42),  # "under 20" to "40 or over"
    "yrs_married": (0.5, 23),
    "children": (0, 5.5),
    "religious": (1, 4),
    "educ": (9, 20),  # grade school to an advanced degree
}
occupations = ["occupation", "occupation_husb"]

plain = BoundedScaler(list(bounds.values()))
products = make_pipeline(plain, PolynomialFeatures(2, include_bias=False))
jobs = OneHotEncoder(categories=[[1, 2, 3, 4, 5, 6]] * 2)

# %%
# The model, and four candidates
# ------------------------------
#
# Each candidate is a set of columns, with a bound on the length of its rows: columns in [-1, 1]
# count a third each, one-hot columns one for each question. The first candidate is the one that
# we would take without a search. ``sparse_threshold=0`` is there because a ColumnTransformer
# otherwise decides by the records whether its output is sparse; without it the search refuses.

columns = ColumnTransformer(
    [("numbers", plain, list(bounds)), ("jobs", jobs, occupations)], sparse_threshold=0
)
model = make_pipeline(columns, DPLogisticRegression(classes=[0, 1]))

candidates = {
    "6 columns": (plain, "drop", (6 / 3) ** 0.5),
    "and occupations": (plain, jobs, (2 + 6 / 3) ** 0.5),
    "6 columns, products": (products, "drop", (27 / 3) ** 0.5),
    "all of these": (products, jobs, (2 + 27 / 3) ** 0.5),
}
grid = [
    {
        "columntransformer__numbers": [numbers],
        "columntransformer__jobs": [encoder],
        "dplogisticregression__data_norm": [norm],
    }
    for numbers, encoder, norm in candidates.values()
]
search = StabilityGridSearchCV(model, grid, epsilon=1.0)

# %%
# The plan
# --------
#
# The survey has 6,366 records and eight columns; one in five is set aside for this page. The
# plan reads an invented row, for the names of the columns. With epsilon 1 the choice costs a
# tenth, and sees large differences only. With epsilon 0.1 nothing would be seen, and nothing is
# paid for it.

women = fair.load_pandas().data
had_affair = (women.pop("affairs") > 0).astype(int)
held_out = np.arange(len(women)) % 5 == 0  # by number, not by what is in the record
X, y = women[~held_out], had_affair[~held_out]
X_test, y_test = women[held_out], had_affair[held_out]

invented = pd.DataFrame([[1] * 8], columns=list(bounds) + occupations)
for epsilon in (0.1, 1.0):
    plan = search.set_params(epsilon=epsilon).plan(len(X), X.shape[1], example=invented)
    print(f"epsilon {epsilon}: {plan.strategy}, {plan.selection_epsilon:g} for the choice")
    for message in plan.messages:
        print("  ", message)

# %%
# One search
# ----------
#
# This is what a data holder would do, once.

search.set_params(epsilon=1.0).fit(X, y)
print("chosen:", list(candidates)[search.best_index_])
print(search.privacy_)

# %%
# What the noise costs
# --------------------
#
# We may do more, because this data set has been public for decades: run the search many times
# and score each model on the women who were set aside. (Of private records, each of these
# numbers would be a release that nobody paid for.) Below, the mean squared error of the
# predicted probability; each point is one search. Two lines show what it is compared with:
# logistic regression without privacy, on all columns, and the share of affairs, predicted for
# everybody.

epsilons = [0.1, 0.2, 0.5, 1, 2, 5, 10]
n_searches = 5
errors = np.empty((len(epsilons), n_searches))
chosen = np.empty((len(epsilons), n_searches), dtype=int)
for i, epsilon in enumerate(epsilons):
    for j in range(n_searches):
        search.set_params(epsilon=epsilon).fit(X, y)
        errors[i, j] = brier_score_loss(y_test, search.predict_proba(X_test)[:, 1])
        chosen[i, j] = search.best_index_

everything = columns.set_params(numbers=products, jobs=jobs)
exact = make_pipeline(everything, LogisticRegression(max_iter=1000)).fit(X, y)
without_privacy = brier_score_loss(y_test, exact.predict_proba(X_test)[:, 1])
constant = np.mean((y_test - y.mean()) ** 2)

figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.axhline(constant, color="0.5", ls="--", lw=1)
ax.text(12, constant, "share of affairs,\nfor everybody", color="0.4", va="center", fontsize="small")
ax.axhline(without_privacy, color="k", ls="--", lw=1)
ax.text(12, without_privacy, "no privacy", va="center", fontsize="small")
spread = np.geomspace(0.93, 1.07, n_searches)  # beside each other, to be seen
for which, (name, colour, mark) in enumerate(zip(candidates, ("C0", "C1", "C2", "C3"), "osD^")):
    i, j = np.nonzero(chosen == which)
    ax.plot(np.array(epsilons)[i] * spread[j], errors[i, j], mark, color=colour, ms=5, label=name)
ax.set(
    xscale="log",
    xlim=(0.085, 11.6),
    xlabel=r"privacy loss $\varepsilon$ of the whole search",
    ylabel="mean squared error, held out",
    title="Each point is one search; its colour, the choice",
)
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.minorticks_off()
ax.legend(title="columns that were chosen", fontsize="small", title_fontsize="small")
plt.show()

# %%
# With a small epsilon the search does not choose: it takes the first set, and saves its budget
# for the model. From some epsilon on it chooses, and the choice differs from run to run: sets
# whose risks are close cannot be distinguished, and with a larger epsilon richer sets bear their
# noise. How much of the way from the grey line to the black one is left after the noise:

for epsilon, error in zip(epsilons, errors.mean(axis=1)):
    print(f"epsilon {epsilon:4}: {(constant - error) / (constant - without_privacy):5.0%}")
