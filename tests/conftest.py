"""What holds for every test: one thread for each process, and no forked process that hangs for ever.

BLAS and OpenMP start as many threads as there are cores, in each worker of ``-n auto`` and in each
process that a test starts. They get in each other's way, and sums over threads differ from machine
to machine. The libraries read these variables when they are imported, which is after this file.
"""

import os
import signal

import pytest

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

# the limit of setup.cfg is for the process of the tests; what it forks would outlive it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: signal.alarm(600))


@pytest.fixture(autouse=True, scope="session")
def few_runs():
    """Let random stopping make fewer runs than by default: what is tested holds for any number."""
    from dpselect.model_selection.strategies import random_stopping

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_stopping, "RUNS", 3)
        yield
