"""Attack a stability certificate, at fixed noise."""

import numpy as np
from sklearn.base import clone, is_classifier

from ..exceptions import (
    CertificateError,
)
from ..metrics import ClippedSquaredErrorScore, RampScore, get_score
from .case import as_records
from .tally import leave_out, require


def check_certificate(case):
    """Check that a stated certificate holds for the worst neighbours."""
    if not hasattr(case.estimator, "stability_certificate"):
        return
    n, d = 6, case.one
    for params in ({"epsilon": 20.0}, {"epsilon": 1.0}, {"epsilon": 20.0, **case.several_outputs()}):
        outputs = len(params.get("classes", ())) or (
            len(case.labels()) if is_classifier(case.estimator) else 1
        )
        problems = outputs if outputs > 2 else 1
        edge = case.edge(d, params)
        model = case.model(7, **params)
        for score in _scores(case):
            try:
                certificate = model.stability_certificate(score, n, d, problems)
            except CertificateError as refusal:
                leave_out(str(refusal))
                continue
            again = clone(model).stability_certificate(score, n, d, problems)
            require(again == certificate, "Two certificates of the same noise differ.")
            for base in (edge[0], edge[-1]):
                models = [clone(model).fit(*as_records([record] + [base] * (n - 1))) for record in edge]
                records = [as_records([record]) for record in edge]
                values = np.array([[score(fitted, *one[:2]) for one in records] for fitted in models])
                for name, bound, moved in (
                    ("training", certificate.training, np.ptp(values, axis=0).max()),
                    ("validation", certificate.span, np.ptp(values, axis=1).max()),
                ):
                    require(
                        moved <= bound * (1 + 1e-9) + 1e-12,
                        f"One {name} record moves {type(score).__name__} by {moved:g} at fixed noise, "
                        f"and the certificate says at most {bound:g}.",
                    )


def _scores(case):
    yield RampScore(-30.0, 30.0)
    yield ClippedSquaredErrorScore(100.0)
    scoring = getattr(case.estimator, "default_scoring", None)
    if scoring is not None:
        yield get_score(scoring)
