"""Times diffprivlib in an environment of its own; ``compare.py --other-python`` starts it.

Reads requests from standard input and writes replies to standard output, one JSON object a line:
``{"contestant": "logistic", "shape": [1000, 5], "alpha": 0.01, "threads": 1}`` is answered by
``{"seconds": 0.01, "warned": []}``, and ``{}`` by ``{"versions": "..."}``. Imports nothing of
dpselect.
"""

import json
import os
import platform
import sys

import diffprivlib
import numpy as np
import scipy
import sklearn
from _timing_clock import seconds
from _timing_data import records
from diffprivlib.models import LinearRegression, LogisticRegression


def logistic(n, alpha):
    """Return diffprivlib's logistic regression at scikit-learn's C for `alpha`."""
    return LogisticRegression(epsilon=1.0, data_norm=1.0, C=1 / (n * alpha))


def linear(n, alpha):
    """Return diffprivlib's linear regression, which has no regularisation."""
    return LinearRegression(epsilon=1.0, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0))


CONTESTANTS = {"logistic": ("labels", logistic), "linear": ("targets", linear)}


def reply(request):
    """Return the answer to one request."""
    if not request:
        modules = (diffprivlib, sklearn, np, scipy)
        named = [f"{module.__name__} {module.__version__}" for module in modules]
        return {"versions": ", ".join([f"Python {platform.python_version()}", *named])}
    kind, make = CONTESTANTS[request["contestant"]]
    n, d = request["shape"]
    X, y = records(kind, n, d)

    def call():
        return make(n, request.get("alpha")).fit(X, y)

    taken, warned = seconds(call, request["threads"])
    return {"seconds": taken, "warned": warned}


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
