"""Rounds of timings in which contestants take turns, in this process and in another one."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _timing_clock import seconds
from _timing_data import records

SERVER = Path(__file__).with_name("_timing_server.py")
ORDER_SEED = 1


@dataclass(frozen=True)
class Contestant:
    """What is timed.

    Attributes
    ----------
    side : str
        "dpselect", or the name of a rival. Of several contestants of a rival the fastest counts.
    label : str
    call : callable, default=None
        ``call(X, y)``; None is timed in the other environment.
    request : dict, default=None
        What is asked there.
    """

    side: str
    label: str
    call: Callable[[object, object], object] | None = None
    request: dict | None = None


@dataclass(frozen=True)
class Workload:
    """Contestants that do the same work on the same records."""

    title: str
    kind: str
    shape: tuple[int, int]
    contestants: list[Contestant]


class OtherPython:
    """The server in the environment that holds diffprivlib; it lives as long as this object.

    Parameters
    ----------
    interpreter : str
        Path of that environment's Python.
    """

    def __init__(self, interpreter):
        # modules of this environment would hide those of the other one
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self.process = subprocess.Popen(
            [interpreter, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment,
        )
        self.versions = self.ask({})["versions"]

    def ask(self, request):
        """Return the reply to a request, or raise the error that it met."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"The other Python ended with {self.process.wait()}.")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"In the other Python: {answer['error']}")
        return answer

    def seconds(self, request, shape, threads):
        """Time a contestant there; as :func:`_timing_clock.seconds`."""
        answer = self.ask({**request, "shape": shape, "threads": threads})
        return answer["seconds"], answer["warned"]

    def close(self):
        """End the server."""
        self.process.stdin.close()
        self.process.wait()


def play(workload, threads, rounds, other=None):
    """Time all contestants of a workload, in turns.

    Each round has each contestant at each number of threads once, in an order of its own; a
    first round warms up and does not count.

    Parameters
    ----------
    workload : Workload
    threads : list of int
    rounds : int
    other : OtherPython, default=None
        Without it, contestants that need it are left out.

    Returns
    -------
    times : dict of (Contestant index, int) to ndarray of shape (rounds,)
        Seconds by contestant and number of threads.
    warned : dict of Contestant index to set of str
    """
    X, y = records(workload.kind, *workload.shape)
    here = [
        i for i, contestant in enumerate(workload.contestants)
        if contestant.call or other is not None
    ]
    entries = [(i, number) for i in here for number in threads]
    times = {entry: [] for entry in entries}
    warned = {i: set() for i in here}
    rng = np.random.default_rng(ORDER_SEED)
    for played in range(rounds + 1):
        for j in rng.permutation(len(entries)):
            i, number = entries[j]
            contestant = workload.contestants[i]
            if contestant.call:
                taken, categories = seconds(lambda call=contestant.call: call(X, y), number)
            else:
                taken, categories = other.seconds(contestant.request, workload.shape, number)
            warned[i].update(categories)
            if played:
                times[entries[j]].append(taken)
        print(f"{workload.title} {workload.shape}: round {played} of {rounds}", file=sys.stderr)
    return {entry: np.array(values) for entry, values in times.items()}, warned
