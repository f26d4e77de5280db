"""Fit Dawid–Skene to a crowd in shards and report every pass: ``scale_fit.py FOLDER PASSES THREADS``.

Prints a line for each pass, then JSON: seconds by kind of work, peak memory, size of the page cache, and the accuracy on the
first shard, whose truth is in the folder (also that of majority vote).
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scale_usage import cached, fetched, memory

from wisecrowd import Crowd, DawidSkene
from wisecrowd.em.initialization import compute_vote_shares

GB = 1e9
#: Parts of a pass, and the methods of DawidSkene that do them.
WORK = {"M-step": "_label_probs", "prior density": "_log_prior", "E-step and sums": "_e_step"}


def main() -> None:
    folder, passes, n_jobs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    crowd = Crowd.open(folder)
    method = DawidSkene(max_iter=passes, tol=0, n_jobs=n_jobs)
    seconds_by_part: dict[str, float] = defaultdict(float)
    before = {"cached": cached(), "fetched": fetched()}
    started = last = time.perf_counter()
    number = 0

    def timed(what: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def measure(*arguments: Any) -> Any:
            nonlocal number, last
            start = time.perf_counter()
            result = work(*arguments)
            now = time.perf_counter()
            seconds_by_part[what] += now - start
            if what == "E-step and sums":
                number += 1
                detail = f"(E-step {now - start:.2f} s)  log-likelihood {result.log_likelihood:,.1f}"
                log(f"pass {number:2d}  {now - last:7.2f} s  {detail}")
                last = now
            return result

        return measure

    def log(text: str) -> None:
        used = memory()
        sizes = f"own {used['own'] / GB:.2f} GB, mapped {used['mapped'] / GB:.2f} GB, peak {used['peak'] / GB:.2f} GB"
        disk = f"from disk {(fetched() - before['fetched']) / GB:.2f} GB, page cache {cached() / GB:.2f} GB"
        print(f"{time.perf_counter() - started:8.2f} s  {text}; {sizes}; {disk}", flush=True)

    log(f"{crowd!r}, {n_jobs} threads, {passes} passes")
    for what, name in WORK.items():
        vars(method)[name] = timed(what, getattr(method, name))
    first_sums = method._initialize

    def starts(*arguments: Any) -> Any:
        nonlocal last
        for result in first_sums(*arguments):
            seconds_by_part["start from the votes"] += time.perf_counter() - last
            log("start from the votes")
            last = time.perf_counter()
            yield result

    vars(method)["_initialize"] = starts
    method.fit(crowd)
    wall, cpu = time.perf_counter() - started, time.process_time()
    log("fitted")
    peak = memory()["peak"]
    truth = np.load(folder / "truth.npy")
    answer = next(method.posterior_tables()).to_numpy().argmax(axis=1)
    counted = compute_vote_shares(crowd.shards[0], np.float32).argmax(axis=1)
    log(f"{len(truth):,} tasks of the first shard compared with their truth")
    figures = {
        "wall": wall, "cpu": cpu, "passes": number, "peak": peak, "cached": cached(), "cached_before": before["cached"],
        "fetched": fetched() - before["fetched"], "accuracy": float((answer == truth).mean()),
        "accuracy_of_counting": float((counted == truth).mean()), "spent": dict(seconds_by_part),
        "shards": crowd.n_shards, "votes": crowd.n_votes, "tasks": crowd.n_tasks, "workers": crowd.n_workers,
        "objective": float(method.trace_[-1]),
    }  # fmt: skip
    print(json.dumps(figures))


main()
