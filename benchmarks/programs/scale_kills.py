"""Kill fits at random moments and restart them until they end: ``scale_kills.py CROWD SCRATCH KILLS PASSES``.

Three kinds in turn: the process of a fit with the local engine, an actor of a fit on Ray, and the driver of a fit on Ray. A fit
whose process was killed is restarted from its checkpoint until it ends. Prints a row for every fit as JSON.
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

from scale_usage import find_descendants

VICTIM = Path(__file__).parent / "scale_victim.py"
#: Processes to kill by engine, with their share of the kills in tenths. A driver on Ray is slow to restart.
KINDS = {("local", "the process"): 5, ("ray", "an actor"): 4, ("ray", "the driver"): 1}
#: Largest number of kills of one fit, so that resumed fits end, too.
MOST_OF_ONE = 5
#: Share of the duration of an undisturbed fit in which a process is killed; resumed fits cover the rest.
SOON = 0.6


class Fit:
    """Fit that can be restarted."""

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
        """Return True if the fit ended because actors were lost too often in a row; stop the program for any other reason."""
        messages = self.errors.read_text(errors="replace")
        if "wisecrowd.engines.ray.ClusterLost:" not in messages:
            raise SystemExit(f"{' '.join(self.command)} ended without being killed:\n{messages[-3000:]}")
        return True

    def ended(self) -> dict[str, Any]:
        """Return the result and delete the files."""
        result: dict[str, Any] = json.loads(self.result.read_text())
        self.forget()
        return result


def run_undisturbed(fit: Fit) -> dict[str, Any]:
    started = time.monotonic()
    process = fit.start()
    if process.wait():
        raise SystemExit(f"{' '.join(fit.command)} ended without being killed:\n{fit.errors.read_text()[-3000:]}")
    return fit.ended() | {"wall": time.monotonic() - started}


class Kills(NamedTuple):
    """Moments of the kills in seconds after a start, and the number of times that a fit gave up and was restarted."""

    moments: list[float]
    n_gave_up: int


def kill_process(fit: Fit, wall: float, most: int, draw: random.Random) -> Kills:
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
    return Kills(moments, 0)


def kill_actor(fit: Fit, wall: float, most: int, draw: random.Random) -> Kills:
    """Kill actors at random moments until the fit ends."""
    moments: list[float] = []
    n_gave_up = 0
    while not fit.result.exists():
        process, started = fit.start(), time.monotonic()
        while process.poll() is None:
            due = time.monotonic() + draw.uniform(0, wall)
            while process.poll() is None and (time.monotonic() < due or len(moments) >= most):
                time.sleep(0.01)
            actors = find_descendants(process.pid, "ray::ChunkActor")
            if actors:
                with suppress(ProcessLookupError):
                    os.kill(draw.choice(actors), signal.SIGKILL)
                    moments.append(time.monotonic() - started)
        n_gave_up += bool(process.returncode) and fit.gave_up()
    return Kills(moments, n_gave_up)


def main() -> None:
    crowd, scratch, most, passes = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    draw = random.Random(0)
    plain = {engine: run_undisturbed(Fit(crowd, scratch, engine, passes, engine)) for engine in ("local", "ray")}
    remaining = {kind: max(1, round(most * tenths / 10)) for kind, tenths in KINDS.items()}
    rows = []
    for number, (engine, what) in zip(count(1), cycle(KINDS)):
        if not any(remaining.values()):
            break
        if not remaining[engine, what]:
            continue
        fit, now = Fit(crowd, scratch, engine, passes, f"{engine}-{number}"), min(MOST_OF_ONE, remaining[engine, what])
        if what == "an actor":
            kills = kill_actor(fit, SOON * plain[engine]["seconds"] / 2, now, draw)
        else:
            kills = kill_process(fit, SOON * plain[engine]["wall"], now, draw)
        remaining[engine, what] -= len(kills.moments)
        equal = fit.ended()["sha256"] == plain[engine]["sha256"]
        if not kills.moments and equal:  # over before its moment came
            continue
        moments = [round(moment, 2) for moment in kills.moments]
        rows.append(
            {"engine": engine, "killed": what, "kills": len(moments), "after seconds": moments, "gave up": kills.n_gave_up,
             "result as undisturbed": equal}
        )  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    print(json.dumps({"rows": rows, "undisturbed": plain}))


main()
