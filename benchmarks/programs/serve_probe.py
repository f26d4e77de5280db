"""Measure what the machine itself holds up: ``serve_probe.py FOLDER SECONDS``.

One thread writes 4 kB to a file in FOLDER and waits for the disk, ten times per second; another one sleeps 10 ms and notes by how
much it wakes up late. Neither has anything to do with the service. The program prints the longest delays as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path


def probe_disk(path: Path, end: float, delays: list[float]) -> None:
    with path.open("wb", buffering=0) as file:
        while time.perf_counter() < end:
            file.seek(0)
            file.write(os.urandom(4096))
            started_at = time.perf_counter()
            os.fsync(file.fileno())
            delays.append(time.perf_counter() - started_at)
            time.sleep(0.1)


def probe_processor(end: float, delays: list[float]) -> None:
    while (started_at := time.perf_counter()) < end:
        time.sleep(0.01)
        delays.append(time.perf_counter() - started_at - 0.01)


def main() -> None:
    folder, end = Path(sys.argv[1]), time.perf_counter() + float(sys.argv[2])
    disk: list[float] = []
    processor: list[float] = []
    thread = threading.Thread(target=probe_disk, args=(folder / "probe", end, disk))
    thread.start()
    probe_processor(end, processor)
    thread.join()
    print(json.dumps({"fsync_worst": max(disk), "wake_worst": max(processor)}))


if __name__ == "__main__":
    main()
