"""
Classify: from a questionnaire to a model, its pictures and its scores
======================================================================

In 1974 a magazine asked its readers about their marriages, and whether they had had an affair;
6,366 of the women's answers became the data of Fair, *A Theory of Extramarital Affairs* (1978). We
predict that last answer, measure how well, and look at what each column adds. All of it costs
epsilon 1: the answers are private, the questionnaire is public.
"""

# %%
# From the questionnaire to a model
# ---------------------------------
#
# The schema says what the questionnaire says: which answers were offered. Everything else, the
# length of rows above all, follows from it. One row in five is set aside, by number and not by what
# is in it.

# sphinx_gallery_thumbnail_path = "images/thumbnails/classify.png"

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import fair

from dpselect import DPLogisticRegression, EvaluationRocDisplay, TermsDisplay, evaluate, privacy_of
from dpselect.preprocessing import tabular_pipeline

jobs = ["student", "farm, unskilled", "white collar", "teacher, nurse", "managerial", "professional"]
schema = {
    "rate_marriage": (1, 5),  # very poor to very good
    "age": {"bounds": (17.5, 42), "unit": "years"},  # "under 20" to "40 or over"
    "yrs_married": {"bounds": (0.5, 23), "unit": "years"},
    "children": (0, 5.5),
    "religious": (1, 4),
    "educ": {"bounds": (9, 20), "unit": "years"},
    "occupation": jobs,
    "occupation_husb": jobs,
}
women = fair.load_pandas().data
had_affair = (women.pop("affairs") > 0).astype(int)
names = dict(enumerate(jobs, start=1))
women = women.replace({"occupation": names, "occupation_husb": names})

held_out = np.arange(len(women)) % 5 == 0
X, y = women[~held_out], had_affair[~held_out]

model = tabular_pipeline(schema, DPLogisticRegression(epsilon=1.0, classes=[0, 1], alpha=0.03))
print(privacy_of(model.fit(X, y)))

# %%
# How good is it?
# ---------------
#
# ``evaluate`` releases scores of the women who were set aside, with intervals that cover sampling
# and noise. These are other women than those of the model, so nobody is in both releases: epsilon
# is 1 for each of them.

evaluation = evaluate(model, women[held_out], had_affair[held_out], epsilon=1.0)
print(evaluation)
EvaluationRocDisplay.from_evaluation(evaluation).plot()
plt.show()

# %%
# What the model says
# -------------------
#
# The model is a sum of terms: a curve for each number, a level for each category. So it can be looked
# at, whole. The pictures read what was released and public numbers, and cost nothing. Each shows what
# one column adds to the log odds of an affair, on the same scale. A term is 0 on average over its
# bounds, or over its categories. ``n_samples``, a public number, is needed for the bands: twice the
# largest standard deviation that the noise of the term can have, on any records. Where such a band
# holds 0 everywhere the term may be noise or not: that is "not known without intervals", which
# :func:`~dpselect.coef_interval` releases for an epsilon of its own.

display = TermsDisplay.from_estimator(model, n_samples=len(X))
display.plot(n_cols=2)
plt.show()

# %%
# What a band covers
# ------------------
#
# Noise, and nothing else: a band does not say whether other women would have answered likewise. As
# these records are public we can fit again. The grey curves are ten more models of the same records,
# each with noise of its own (of private records, each would be a release): they scatter less
# than the band allows.
#
# It is wide because it must hold for all records. Where records tell much about a direction,
# noise moves the model little along it; but how much they tell is a fact about them, and was not
# paid for. The band counts with what is public: the regularisation ``alpha``, here 0.03,
# several times the default. The squared error of the predictions hardly changes, and bands are narrower
# by that factor. (With ``alpha="auto"`` more epsilon does not narrow the bands, since ``alpha`` falls.)

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
column, n = ["rate_marriage"], len(X)
TermsDisplay.from_estimator(model, column, n_samples=n).plot(ax)
for _ in range(10):
    (again,) = TermsDisplay.from_estimator(model.fit(X, y), column).terms
    ax.plot(again.values[0], again.effect, color="0.6", lw=0.8)
plt.show()

# %%
# The numbers
# -----------
#
# The same as a table, for those who draw themselves:

print(display.to_frame().groupby("term", sort=False)[["effect", "noise"]].agg(["min", "max"]).round(2))

# %%
# The next steps: a :doc:`choice among models </auto_gallery/2_plans/plot_survey>` on the same survey,
# and :doc:`what to hand over </export>`, with a privacy statement to be signed.
