"""The demonstration, on the public breast-cancer records of scikit-learn."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, roc_auc_score

from ..linear_model import DPLogisticRegression
from ..model_selection import StabilityGridSearchCV
from ..preprocessing import PublicSchema, tabular_pipeline
from .printing import plan_text, to_text

# What is known of a nucleus in a smear before any record is read. The radius comes first: 5
# to 30 micrometres. A circle of that size has the perimeters and areas below. The other
# columns are defined so that a round, even nucleus has values near 0.
BOUNDS = PublicSchema(
    {
        "mean radius": (5, 30),  # micrometres
        "mean texture": (5, 45),  # standard deviation of grey levels
        "mean perimeter": (30, 190),  # 2 pi radius
        "mean area": (80, 2800),  # pi radius^2
        "mean smoothness": (0, 0.2),  # unevenness of the radius, relative
        "mean compactness": (0, 0.4),  # perimeter^2 / area against a circle's
        "mean concavity": (0, 0.5),  # depth of the dents, relative
        "mean concave points": (0, 0.25),  # share of the outline that is dented
        "mean symmetry": (0, 0.4),  # difference of the halves, relative
        "mean fractal dimension": (0, 0.1),  # of the outline, above the 1 of a line
    }
)
# Any grid of alpha will do: it costs nothing, since its point follows from public numbers.
ALPHAS = [0.01, 0.03, 0.1, 0.3, 1.0]
EPSILON = 3.0


def make_search():
    """Return the unfitted search."""
    model = tabular_pipeline(
        BOUNDS, DPLogisticRegression(classes=[0, 1]), expansion="linear", categories="onehot"
    )
    return StabilityGridSearchCV(model, {"model__alpha": ALPHAS}, epsilon=EPSILON)


def run():
    """Tune, release, and print everything in the order in which it happens."""
    search = make_search()
    data = load_breast_cancer()
    # splits by position, which do not depend on the records
    held_out = np.arange(len(data.target)) % 5 == 0
    n_samples = int((~held_out).sum())
    print(
        f"Ten columns of scikit-learn's breast-cancer records (0 malignant, 1 benign): "
        f"{n_samples} to learn from,\n{held_out.sum()} held out. The columns' bounds come from "
        "knowledge of the field. Epsilon is large because\nthe records are few.\n"
    )
    print(plan_text(search.plan(n_samples, len(BOUNDS.columns))), end="\n\n")
    columns = [list(data.feature_names).index(name) for name in BOUNDS.columns]
    X, y = data.data[:, columns], data.target
    search.fit(X[~held_out], y[~held_out])
    print(to_text(search), end="\n\n")
    print(_public_check(search, X[held_out], y[held_out]))


def _public_check(search, X, y):
    accuracy = accuracy_score(y, search.predict(X))
    area = roc_auc_score(y, search.decision_function(X))
    guess = max(np.mean(y), 1 - np.mean(y))
    return (
        "On the held-out records\n"
        f"  accuracy {accuracy:.3f} (always the more common diagnosis: {guess:.3f}), "
        f"AUC {area:.3f}\n"
        "  These two numbers are exact functions of records. They can be printed only because\n"
        "  these records are public; of private records they would be a further release."
    )
