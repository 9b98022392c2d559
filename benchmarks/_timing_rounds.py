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

OURS, BEFORE = "dpselect", "dpselect of "
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
            [interpreter, SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        answer = self.ask({})
        self.versions, self.offers = answer["versions"], answer["offers"]
        # of the folder of the environment
        self.name = Path(interpreter).absolute().parents[1].name

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


def before(workload, version):
    """Return our contestants of a workload as they are in an environment with another version of us."""
    return [
        Contestant(
            BEFORE + version.name,
            ours.label,
            request={
                "contestant": OURS,
                "workload": [workload.part, workload.title],
                "label": ours.label,
            },
        )
        for ours in workload.contestants
        if ours.side == OURS
    ]


def play(workload, threads, rounds=None, others=(), versions=()):
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
    versions : list of OtherPython, default=()
        With other versions of dpselect; what one of them refuses in the first round is left out.

    Returns
    -------
    list of dict
        One for each timing.
    """
    X, y = records(workload.kind, *workload.shape)
    where = {name: other for other in others for name in other.offers}
    here = [
        (contestant, None if contestant.call else where[contestant.request["contestant"]])
        for contestant in workload.contestants
        if contestant.call or contestant.request["contestant"] in where
    ]
    here += [(twin, version) for version in versions for twin in before(workload, version)]
    entries = [(*each, number) for each in here for number in threads]
    lines, refused, rng = [], [], np.random.default_rng(ORDER_SEED)
    for played in range((rounds or workload.rounds) + 1):
        for j in rng.permutation(len(entries)):
            contestant, other, number = entries[j]
            try:
                taken = (
                    other.seconds(contestant.request, workload.shape, number)
                    if other
                    else seconds(lambda call=contestant.call: call(X, y), number)
                )
            except RuntimeError as error:
                if played or other not in versions:
                    raise
                refused.append(entries[j])
                print(f"{contestant.side} is left out: {error}", file=sys.stderr, flush=True)
                continue
            if played:
                lines.append(
                    {
                        "part": workload.part,
                        "task": workload.title,
                        "n": workload.shape[0],
                        "d": workload.shape[1],
                        "threads": number,
                        "side": contestant.side,
                        "contestant": contestant.label,
                        "round": played,
                        "cpu": f"{taken[0]:.4g}",
                        "wall": f"{taken[1]:.4g}",
                        "warned": " ".join(taken[2]),
                    }
                )
        entries = [entry for entry in entries if entry not in refused]
        print(f"{workload.title} {workload.shape}: round {played}", file=sys.stderr, flush=True)
    return lines
