"""Fit Dawid-Skene to a crowd in shards and tell of every pass: ``scale_fit.py FOLDER PASSES THREADS``.

Prints a line for each pass, then as JSON: seconds by kind of work, the peak of the process, what the system held of files, and
the accuracy on the first shard, whose truth the folder keeps (beside that of counting its votes).
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
#: What a pass consists of, and the method of DawidSkene that does it.
WORK = {"M-step": "_label_probs", "prior density": "_log_prior", "E-step and sums": "_e_step"}


def main() -> None:
    folder, passes, n_jobs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    crowd = Crowd.open(folder)
    method = DawidSkene(max_iter=passes, tol=0, n_jobs=n_jobs)
    spent: dict[str, float] = defaultdict(float)
    before = {"cached": cached(), "fetched": fetched()}
    begun = last = time.perf_counter()
    number = 0

    def timed(what: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def done(*arguments: Any) -> Any:
            nonlocal number, last
            start = time.perf_counter()
            found = work(*arguments)
            now = time.perf_counter()
            spent[what] += now - start
            if what == "E-step and sums":
                number += 1
                detail = f"(E-step {now - start:.2f} s)  log-likelihood {found.log_likelihood:,.1f}"
                log(f"pass {number:2d}  {now - last:7.2f} s  {detail}")
                last = now
            return found

        return done

    def log(text: str) -> None:
        used = memory()
        sizes = f"own {used['own'] / GB:.2f} GB, mapped {used['mapped'] / GB:.2f} GB, peak {used['peak'] / GB:.2f} GB"
        disk = f"from disk {(fetched() - before['fetched']) / GB:.2f} GB, page cache {cached() / GB:.2f} GB"
        print(f"{time.perf_counter() - begun:8.2f} s  {text}; {sizes}; {disk}", flush=True)

    log(f"{crowd!r}, {n_jobs} threads, {passes} passes")
    for what, name in WORK.items():
        vars(method)[name] = timed(what, getattr(method, name))
    first_sums = method._initialize

    def starts(*arguments: Any) -> Any:
        nonlocal last
        for found in first_sums(*arguments):
            spent["start from the votes"] += time.perf_counter() - last
            log("start from the votes")
            last = time.perf_counter()
            yield found

    vars(method)["_initialize"] = starts
    method.fit(crowd)
    wall, cpu = time.perf_counter() - begun, time.process_time()
    log("fitted")
    peak = memory()["peak"]
    truth = np.load(folder / "truth.npy")
    answer = next(method.posterior_tables()).to_numpy().argmax(axis=1)
    counted = compute_vote_shares(crowd.shards[0], np.float32).argmax(axis=1)
    log(f"{len(truth):,} tasks of the first shard compared with their truth")
    found = {
        "wall": wall, "cpu": cpu, "passes": number, "peak": peak, "cached": cached(), "cached_before": before["cached"],
        "fetched": fetched() - before["fetched"], "accuracy": float((answer == truth).mean()),
        "accuracy_of_counting": float((counted == truth).mean()), "spent": dict(spent),
        "shards": crowd.n_shards, "votes": crowd.n_votes, "tasks": crowd.n_tasks, "workers": crowd.n_workers,
        "objective": float(method.trace_[-1]),
    }  # fmt: skip
    print(json.dumps(found))


main()
