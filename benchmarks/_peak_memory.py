"""Peak memory of one call in this process, above that of its records: run in a new process.

Usage::

    python benchmarks/_peak_memory.py {logistic,ridge,search} N D

The peak is that of the resident set. The process first does the same on a few records, so that
modules and thread pools are loaded, and then makes the records, which takes no memory beside them.
"""

import json
import resource
import sys
import time
from pathlib import Path

from _timing_contestants import CLASSES, CLASSIFIER_ALPHAS, stability_search
from _timing_data import records
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from dpselect import DPLogisticRegression, DPRidge

CASES = {
    "logistic": ("labels", DPLogisticRegression(classes=CLASSES)),
    "ridge": ("targets", DPRidge(norm="l2", target_range=(-1, 1))),
    "search": ("labels", stability_search(CLASSIFIER_ALPHAS)),
}
STATUS = Path("/proc/self/status")
FEW = 1000


def peak_bytes():
    """Return the largest resident set so far.

    On Linux a new process counts what its parent had before the program was loaded into
    ``ru_maxrss``, but not into the high-water mark of /proc, so that is read where there is one.
    """
    if STATUS.exists():
        for line in STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(case, n, d):
    """Measure one case and print it as JSON."""
    kind, model = CASES[case]
    with threadpool_limits(1):
        clone(model).fit(*records(kind, FEW, d))
        X, y = records(kind, n, d)
        before, start = peak_bytes(), time.perf_counter()
        clone(model).fit(X, y)
        taken = time.perf_counter() - start
        above = peak_bytes() - before
    print(json.dumps({"data": X.nbytes + y.nbytes, "above": above, "seconds": taken}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
