"""One timing, in the same way in each environment."""

import gc
import time
import warnings

from threadpoolctl import threadpool_info, threadpool_limits

# Seconds before each timing. Idle threads of BLAS wait actively for some hundredths of a second,
# and would take a core from what is timed next, here or in another process.
REST = 0.1
# a call that is shorter is repeated, as often as fits into this time
LEAST = 0.1
MOST = 100


def seconds(call, threads):
    """Time one call.

    Parameters
    ----------
    call : callable
        Takes nothing.
    threads : int
        Of BLAS and OpenMP, around the whole call.

    Returns
    -------
    cpu : float
        Seconds of all threads of this process, which does not count what others do meanwhile.
    wall : float
    warned : list of str
        Categories of the warnings that the call gave.

    Raises
    ------
    RuntimeError
        If BLAS does not take the number of threads.
    """
    with threadpool_limits(threads), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        given = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
        if given - {threads}:
            raise RuntimeError(f"BLAS runs with {given} threads where {threads} were asked for.")
        gc.collect()
        time.sleep(REST)
        cpu, wall = _once(call)
        repeats = min(int(LEAST / max(cpu, LEAST / MOST)), MOST)
        if repeats > 1:
            many = [_once(call) for _ in range(repeats)]
            cpu, wall = (sum(each) / repeats for each in zip(*many))
    return cpu, wall, sorted({warning.category.__name__ for warning in caught})


def _once(call):
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    taken = time.process_time() - cpu, time.perf_counter() - wall
    # what the call made is not taken down within the time
    del result
    return taken
