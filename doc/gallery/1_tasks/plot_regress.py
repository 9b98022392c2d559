"""
Regress: a number to predict, with few records
==============================================

How far does a diabetes progress within a year? 442 patients, ten measurements each (Efron, Hastie,
Johnstone and Tibshirani, *Least Angle Regression*, 2004). That is few for a private model, so
columns have to be worth their noise. ``DPHuberRegressor`` needs to know between which numbers most
targets lie; those that lie elsewhere are not clipped, and do no harm.
"""

# %%
# What is known without the records
# ---------------------------------
#
# Medicine knows what a body mass index, a blood pressure and a blood serum can be. Values beyond a
# bound count as the bound. The score of progression is between 25 and 350.

# sphinx_gallery_thumbnail_path = "images/thumbnails/regress.png"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from dpselect import DPHuberRegressor, privacy_of
from dpselect.preprocessing import tabular_pipeline

schema = {
    "age": {"bounds": (18, 80), "unit": "years"},
    "sex": ["1", "2"],
    "bmi": (18, 42),  # body mass index
    "bp": (60, 130),  # mean blood pressure
    "s1": (100, 300),  # total cholesterol
    "s2": (40, 240),  # low-density lipoproteins
    "s3": (20, 100),  # high-density lipoproteins
    "s4": (2, 9),  # cholesterol over high-density lipoproteins
    "s5": (3.2, 6.2),  # logarithm of triglycerides
    "s6": (60, 120),  # blood sugar
}
target_range = (25, 350)
few = ["bmi", "bp", "s5"]  # what a physician would ask for first

patients, progression = load_diabetes(as_frame=True, scaled=False, return_X_y=True)
held_out = np.arange(len(patients)) % 4 == 0
X, y = patients[~held_out], progression[~held_out]
X_test, y_test = patients[held_out], progression[held_out]

# %%
# One model
# ---------
#
# With so few records a number has a slope, ``expansion="linear"``, and no curve: each column of the
# encoder adds noise.


def private_model(columns, epsilon):
    known = {name: schema[name] for name in columns}
    regression = DPHuberRegressor(epsilon, target_range=target_range)
    return tabular_pipeline(known, regression, expansion="linear")


model = private_model(few, epsilon=1.0).fit(X[few], y)
print(privacy_of(model))

# %%
# A prediction for a new patient is computed from the released model alone:

print(model.predict(X_test[few].head(3)).round())

# %%
# Three columns or ten?
# ---------------------
#
# These records have been public for decades, so we may fit many times and score on the patients who
# were set aside. (Of private records each point would be a release.) The share of the variance that is
# explained, with the mean and the range of twenty fits:

epsilons = [0.1, 0.3, 1, 3, 10]
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for columns, colour in ((list(schema), "C0"), (few, "C1")):
    scores = np.empty((len(epsilons), 20))
    for i, j in np.ndindex(scores.shape):
        fitted = private_model(columns, epsilons[i]).fit(X[columns], y)
        scores[i, j] = r2_score(y_test, fitted.predict(X_test[columns]))
    ax.plot(epsilons, scores.mean(axis=1), "o-", color=colour, label=f"{len(columns)} columns")
    ax.fill_between(epsilons, scores.min(axis=1), scores.max(axis=1), color=colour, alpha=0.15, lw=0)
exact = LinearRegression().fit(X, y)
without = r2_score(y_test, exact.predict(X_test))
ax.axhline(without, color="k", ls="--", lw=1, label="no privacy, 10 columns")
ax.set(xscale="log", xlabel=r"privacy loss $\varepsilon$", ylabel="$R^2$, held out")
ax.set(ylim=(-0.3, 0.6))
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# The noise grows with the number of columns and falls with the number of records times epsilon. With
# a large epsilon the ten columns are as good as the three; with a small one they are in the way.
# Knowledge of the field is worth more than records here: the three columns were chosen by what is
# known of diabetes, so the choice costs nothing. To choose by the records, put both into a
# :doc:`search </choosing>`, which pays for it and says beforehand whether it can see the difference.
#
# A target that is far off
# ------------------------
#
# Suppose that the decimal point of one score in forty was lost. The mean squared error would follow
# them; the Huber loss does not.

careless = y.copy()
careless.iloc[::40] *= 1000
robust = private_model(few, epsilon=1.0).fit(X[few], careless)
print(f"private and robust: R^2 {r2_score(y_test, robust.predict(X_test[few])):.2f}")
squares = LinearRegression().fit(X[few], careless)
print(f"least squares:      R^2 {r2_score(y_test, squares.predict(X_test[few])):.2f}")
