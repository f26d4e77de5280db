"""Kill fits at random moments until they end all the same: ``scale_kills.py CROWD SCRATCH KILLS PASSES``.

Three kinds in turn: the process of a fit with the local engine; an actor of one on Ray; the driver of one on Ray. A fit whose
process was killed is started again, from its checkpoint, until it ends. Prints as JSON a row for every fit.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import count, cycle
from pathlib import Path
from typing import Any, NamedTuple

from scale_usage import below

VICTIM = Path(__file__).parent / "scale_victim.py"
#: Which processes are killed, in which kind of fit, and how often of ten times. A driver on Ray is slow to start again.
KINDS = {("local", "the process"): 5, ("ray", "an actor"): 4, ("ray", "the driver"): 1}
#: Kills of one fit, at most: a resumed one is to end now and then.
MOST_OF_ONE = 5
#: Of the time of an undisturbed fit, the part in which a process is killed: what comes after, a resumed one meets.
SOON = 0.6


class Fit:
    """A fit that is started as often as need be."""

    def __init__(self, crowd: Path, scratch: Path, engine: str, passes: int, name: str) -> None:
        self.checkpoint, self.result, self.errors = (scratch / f"{name}.{kind}" for kind in ("npz", "json", "err"))
        self.forget()
        self.command = [sys.executable, str(VICTIM), *map(str, (crowd, engine, passes, self.checkpoint, self.result))]

    def start(self) -> subprocess.Popen[bytes]:
        with self.errors.open("wb") as errors:
            return subprocess.Popen(self.command, stderr=errors)

    def forget(self) -> None:
        for file in (self.checkpoint, self.result, self.errors):
            file.unlink(missing_ok=True)

    def gave_up(self) -> bool:
        """Whether it ended because actors were lost too often in a row: it can be started again. All else ends the program."""
        said = self.errors.read_text(errors="replace")
        if "wisecrowd.engines.ray.ClusterLost:" not in said:
            raise SystemExit(f"{' '.join(self.command)} ended without being killed:\n{said[-3000:]}")
        return True

    def ended(self) -> dict[str, Any]:
        """What came of it; its files go."""
        found: dict[str, Any] = json.loads(self.result.read_text())
        self.forget()
        return found


def undisturbed(fit: Fit) -> dict[str, Any]:
    begun = time.monotonic()
    process = fit.start()
    if process.wait():
        raise SystemExit(f"{' '.join(fit.command)} ended without being killed:\n{fit.errors.read_text()[-3000:]}")
    return fit.ended() | {"wall": time.monotonic() - begun}


class Killed(NamedTuple):
    """When something was killed, in seconds after a start, and how often a fit gave up by itself and was started again."""

    moments: list[float]
    gave_up: int


def kill_process(fit: Fit, wall: float, most: int, draw: random.Random) -> Killed:
    """Kill the process and start it again, until it ends."""
    moments: list[float] = []
    while not fit.result.exists():
        process, moment = fit.start(), draw.uniform(0, wall)
        try:
            if process.wait(moment if len(moments) < most else None):
                fit.gave_up()
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            moments.append(moment)
    return Killed(moments, 0)


def kill_actor(fit: Fit, wall: float, most: int, draw: random.Random) -> Killed:
    """Kill an actor now and then, until the fit ends."""
    moments: list[float] = []
    gave_up = 0
    while not fit.result.exists():
        process, begun = fit.start(), time.monotonic()
        while process.poll() is None:
            due = time.monotonic() + draw.uniform(0, wall)
            while process.poll() is None and (time.monotonic() < due or len(moments) >= most):
                time.sleep(0.01)
            actors = below(process.pid, "ray::ChunkActor")
            if actors:
                with suppress(ProcessLookupError):
                    os.kill(draw.choice(actors), signal.SIGKILL)
                    moments.append(time.monotonic() - begun)
        gave_up += bool(process.returncode) and fit.gave_up()
    return Killed(moments, gave_up)


def main() -> None:
    crowd, scratch, most, passes = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    draw = random.Random(0)
    plain = {engine: undisturbed(Fit(crowd, scratch, engine, passes, engine)) for engine in ("local", "ray")}
    left = {kind: max(1, round(most * tenths / 10)) for kind, tenths in KINDS.items()}
    rows = []
    for number, (engine, what) in zip(count(1), cycle(KINDS)):
        if not any(left.values()):
            break
        if not left[engine, what]:
            continue
        fit, now = Fit(crowd, scratch, engine, passes, f"{engine}-{number}"), min(MOST_OF_ONE, left[engine, what])
        if what == "an actor":
            killed = kill_actor(fit, SOON * plain[engine]["seconds"] / 2, now, draw)
        else:
            killed = kill_process(fit, SOON * plain[engine]["wall"], now, draw)
        left[engine, what] -= len(killed.moments)
        equal = fit.ended()["sha256"] == plain[engine]["sha256"]
        if not killed.moments and equal:  # over before its moment came
            continue
        moments = [round(moment, 2) for moment in killed.moments]
        rows.append(
            {"engine": engine, "killed": what, "kills": len(moments), "after seconds": moments, "gave up": killed.gave_up,
             "result as undisturbed": equal}
        )  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    print(json.dumps({"rows": rows, "undisturbed": plain}))


main()
