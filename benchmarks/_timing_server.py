"""Times others in an environment of its own; ``compare.py`` starts it.

Reads requests from standard input and writes replies to standard output, one JSON object a line:
``{"contestant": "logistic", "shape": [1000, 5], "alpha": 0.01, "threads": 1}`` is answered by
``{"cpu": 0.01, "wall": 0.01, "warned": []}``, and ``{}`` by ``{"versions": "...", "offers": [...]}``,
where offers are the contestants of libraries that are installed. Of dpselect itself, in another version,
a request names the workload and the label: ``{"contestant": "dpselect", "workload": ["small", "linear
SVC"], "label": "DPLinearSVC", ...}``. Nothing else imports it.
"""

import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from functools import cache

from _timing_clock import seconds
from _timing_data import records


def logistic(X, y, alpha):
    """Fit diffprivlib's logistic regression at scikit-learn's C for `alpha`."""
    from diffprivlib.models import LogisticRegression

    return LogisticRegression(epsilon=1.0, data_norm=1.0, C=1 / (len(X) * alpha)).fit(X, y)


def linear(X, y, alpha):
    """Fit diffprivlib's linear regression, which has no regularisation."""
    from diffprivlib.models import LinearRegression

    return LinearRegression(epsilon=1.0, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0)).fit(X, y)


def boosting(X, y, alpha):
    """Fit InterpretML's DP-EBM by its defaults, on one core."""
    from interpret.privacy import DPExplainableBoostingClassifier

    names = [f"c{i}" for i in range(X.shape[1])]
    return DPExplainableBoostingClassifier(
        feature_names=names,
        feature_types=["continuous"] * len(names),
        epsilon=1.0,
        delta=1e-6,
        privacy_bounds=dict.fromkeys(names, (-1.0, 1.0)),
        n_jobs=1,
    ).fit(X, y)


def on_dask(X, y, alpha):
    """Fit dask-ml's logistic regression, which is not private, on 16 chunks in this thread."""
    import dask
    import dask.array as da
    from dask_ml.linear_model import LogisticRegression

    chunk = -(-len(X) // 16)
    with dask.config.set(scheduler="synchronous"):
        return LogisticRegression(C=1 / (len(X) * alpha), solver="lbfgs").fit(
            da.from_array(X, chunks=(chunk, X.shape[1])), da.from_array(y, chunks=chunk)
        )


# contestant -> module, package, records, call
CONTESTANTS = {
    "logistic": ("diffprivlib", "diffprivlib", "labels", logistic),
    "linear": ("diffprivlib", "diffprivlib", "targets", linear),
    "boosting": ("interpret", "interpret-core", "labels", boosting),
    "on_dask": ("dask_ml", "dask-ml", "labels", on_dask),
}


def offers():
    """Return the contestants whose library is installed, and its package."""
    return {
        name: package
        for name, (module, package, *_) in CONTESTANTS.items()
        if importlib.util.find_spec(module)
    }


@cache
def workloads():
    """Return the workloads that the dpselect of this environment can make, by part, title and shape."""
    from _timing_contestants import makers

    found = {}
    for make in makers():
        try:
            workload = make()
        except (TypeError, ValueError):  # of a parameter that came later
            continue
        found[workload.part, workload.title, *workload.shape] = workload
    return found


def as_here(request):
    """Return the kind of records of a contestant of dpselect, and its call."""
    workload = workloads().get((*request["workload"], *request["shape"]))
    if workload is None:
        raise LookupError(f"this version does not take the parameters of {request['workload'][1]}.")
    (call,) = [
        each.call
        for each in workload.contestants
        if (each.side, each.label) == (request["contestant"], request["label"])
    ]
    return workload.kind, call


def reply(request):
    """Return the answer to one request."""
    if not request:
        own = ["dpselect"] if importlib.util.find_spec("dpselect") else []
        packages = dict.fromkeys([*own, *offers().values(), "scikit-learn", "numpy", "scipy"])
        named = [f"{package} {importlib.metadata.version(package)}" for package in packages]
        versions = ", ".join([f"Python {platform.python_version()}", *named])
        return {"versions": versions, "offers": list(offers())}
    if "workload" in request:
        kind, call = as_here(request)
    else:
        _, _, kind, fit = CONTESTANTS[request["contestant"]]

        def call(X, y):
            return fit(X, y, request.get("alpha"))

    X, y = records(kind, *request["shape"])
    cpu, wall, warned = seconds(lambda: call(X, y), request["threads"])
    return {"cpu": cpu, "wall": wall, "warned": warned}


def main():
    """Answer until standard input ends."""
    # what a library prints must not stand between replies
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        try:
            answer = reply(json.loads(line))
        except Exception as error:  # the other side raises it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=replies, flush=True)


if __name__ == "__main__":
    main()
