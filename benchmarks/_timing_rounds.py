"""Rounds of timings in which contestants take turns, in this process and in others."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
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
        ``call(X, y)``; None is timed in another environment.
    request : dict, default=None
        What is asked there.
    """

    side: str
    label: str
    call: Callable[[object, object], object] | None = None
    request: dict | None = None


@dataclass(frozen=True)
class Workload:
    """Contestants that do the same work on the same records, `rounds` times each."""

    part: str
    title: str
    kind: str
    shape: tuple[int, int]
    contestants: list[Contestant] = field(repr=False)
    rounds: int = 5


class OtherPython:
    """The server in another environment; it lives as long as this object.

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
        answer = self.ask({})
        self.versions, self.offers = answer["versions"], answer["offers"]

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
        return answer["cpu"], answer["wall"], answer["warned"]

    def close(self):
        """End the server."""
        self.process.stdin.close()
        self.process.wait()


def play(workload, threads, rounds=None, others=()):
    """Time all contestants of a workload, in turns.

    Each round has each contestant at each number of threads once, in an order of its own; a
    first round warms up and does not count.

    Parameters
    ----------
    workload : Workload
    threads : list of int
    rounds : int, default=None
        None is as many as the workload says.
    others : list of OtherPython, default=()
        What none of them offers is left out.

    Returns
    -------
    list of dict
        One for each timing.
    """
    X, y = records(workload.kind, *workload.shape)
    where = {
        name: other for other in others for name in other.offers
    }
    here = [
        contestant for contestant in workload.contestants
        if contestant.call or contestant.request["contestant"] in where
    ]
    entries = [(contestant, number) for contestant in here for number in threads]
    lines, rng = [], np.random.default_rng(ORDER_SEED)
    for played in range((rounds or workload.rounds) + 1):
        for j in rng.permutation(len(entries)):
            contestant, number = entries[j]
            if contestant.call:
                taken = seconds(lambda call=contestant.call: call(X, y), number)
            else:
                other = where[contestant.request["contestant"]]
                taken = other.seconds(contestant.request, workload.shape, number)
            if played:
                lines.append({
                    "part": workload.part, "task": workload.title, "n": workload.shape[0],
                    "d": workload.shape[1], "threads": number, "side": contestant.side,
                    "contestant": contestant.label, "round": played,
                    "cpu": f"{taken[0]:.4g}", "wall": f"{taken[1]:.4g}", "warned": " ".join(taken[2]),
                })
        print(f"{workload.title} {workload.shape}: round {played}", file=sys.stderr, flush=True)
    return lines
