"""
A hospital: who will come back?
===============================

A hospital wants to call patients who are likely to be back within a month. Its own table has several
stays of a patient, and the model will be given to other hospitals, so it must be private for the
*patient*. We plan, tune, evaluate, choose a threshold, write the statement for the data-protection
officer, and hand the model over as ONNX.
"""

# %%
# The table
# ---------
#
# The records are invented: 12,000 patients with one to five stays each.

# sphinx_gallery_thumbnail_path = "images/thumbnails/hospital.png"

import os
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from onnx.reference import ReferenceEvaluator

from dpselect import (
    Adjacency,
    DPLogisticRegression,
    EvaluationRocDisplay,
    PrivacyLedger,
    StabilityGridSearchCV,
    calibrated,
    privacy_report,
)
from dpselect.export import to_onnx
from dpselect.preprocessing import tabular_pipeline

rng = np.random.default_rng(0)
stays_of = rng.integers(1, 6, size=12_000)
patient = np.repeat(np.arange(12_000), stays_of)
n = len(patient)
age = rng.normal(60, 18, size=12_000).clip(18, 100).round()[patient]
stays = pd.DataFrame(
    {
        "age": age,
        "earlier stays": rng.poisson(1.5, size=n),
        "days": np.where(rng.random(n) < 0.05, np.nan, rng.gamma(2, 3, size=n).round()),
        "admission": rng.choice(["planned", "emergency", "transfer"], p=[0.5, 0.4, 0.1], size=n),
        "chapter": rng.choice(list("ACEFIJKNST"), size=n),
    }
)
z = -4 + 0.02 * age + 0.5 * stays["earlier stays"] + 1.3 * (stays["admission"] == "emergency")
back = (rng.random(n) < 1 / (1 + np.exp(-z))).to_numpy().astype(int)
print(f"{n} stays; {back.mean():.0%} are followed by another one")

# %%
# What is known without the records
# ---------------------------------
#
# The schema comes from the forms: ages of adults, at most ten earlier stays and thirty days count as
# more, and the chapter of a diagnosis instead of its code. A number that may be missing says so.

schema = {
    "age": (18, 100),
    "earlier stays": (0, 10),
    "days": {"bounds": (0, 30), "missing": True},
    "admission": ["planned", "emergency", "transfer"],
    "chapter": list("ACEFIJKNST"),
}
model = tabular_pipeline(schema, DPLogisticRegression(classes=[0, 1], delta=1e-6))

# %%
# The plan
# --------
#
# Before the records are read we choose epsilon and ask whether curves are worth their noise. A quarter
# of the patients is set aside for the evaluation, at no more epsilon. ``persons=True`` says that the
# number counts patients.

search = StabilityGridSearchCV(
    model, {"encoder__expansion": ["linear", "auto"]}, epsilon=1.0, evaluation=0.25
)
plan = search.plan(n_samples=12_000, n_features=5, persons=True)
for line in plan.advice:
    print(line)

# %%
# The release
# -----------
#
# One ledger counts all releases of these patients. It is made once, and refuses what exceeds it.

folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "patients.ledger")
ledger = PrivacyLedger(path, epsilon=3.0, delta=1e-5, adjacency=Adjacency.REPLACE_PERSON)
with ledger:
    search.fit(stays, back, groups=patient)
print(search.best_params_)
print(ledger)

# %%
# How good is it?
# ---------------
#
# The evaluation is on patients who were set aside. It has the noise of privacy and the chance of a
# sample in its intervals.

evaluation = search.evaluation_
print(evaluation.metric("roc_auc"))
EvaluationRocDisplay.from_evaluation(evaluation).plot()
plt.show()

# %%
# The threshold
# -------------
#
# The ward can call one patient in five. The threshold for that rate, and calibrated probabilities,
# follow from what was released, so they cost nothing.

calls = calibrated(search, evaluation, rate=0.2)
print(f"call above a probability of {calls.threshold:.2f}")
for name in ("recall", "precision"):
    print(name, evaluation.metric(name, rate=0.2))

# %%
# The statement
# -------------
#
# For the data-protection officer, who signs it. ``to_html()`` and ``to_markdown()`` have the same text.

report = privacy_report(search, ledger, about="Stays of our patients, 2023 to 2025")
print("\n".join(report.to_markdown().splitlines()[:24]))

# %%
# Hand it over
# ------------
#
# Other hospitals run it where they predict already. The file has the encoder, the threshold and the
# privacy loss, and needs no dpselect. Here onnx's own evaluator reads it.

graph = to_onnx(calls)
some = stays.head(200)
inputs = {
    name: some[[name]].to_numpy(object if isinstance(entry, list) else np.float64)
    for name, entry in schema.items()
}
(called,) = ReferenceEvaluator(graph).run(["label"], inputs)
print(f"{called.sum()} of 200 are called; as before: {np.array_equal(called, calls.predict(some))}")
folder.cleanup()

# %%
# What to read next: :doc:`plot_statistics_office` for weights and intervals, :doc:`/epsilon` for the
# choice of epsilon, and :doc:`/export` for other ways to hand a model over.
