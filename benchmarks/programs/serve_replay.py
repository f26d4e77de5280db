"""Replay a public crowd vote by vote: ``serve_replay.py DATASET METHOD UNTIL``. Prints figures as JSON.

Needs WISECROWD_DATA. The first half of the votes, in random order, is present at the start. The others arrive one by one, up
to the share UNTIL of all votes, and fits follow the schedule of the service. Before each fit, the labels of the service are
compared with those of the fit; after it, they must be equal.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

import wisecrowd as wc
from wisecrowd.em.live import FitSnapshot, LiveModel
from wisecrowd.errors import ignore_fit_warnings
from wisecrowd.service.question_state import PAUSE_FACTOR
from wisecrowd.service.refit_schedule import RefitSchedule


def main(name: str, method: str, until: float) -> None:
    with ignore_fit_warnings():
        dataset = wc.load_dataset(name)
    crowd = dataset.crowd
    order = np.random.default_rng(0).permutation(crowd.n_votes)
    task, worker, label = (codes[order] for codes in (crowd.task, crowd.worker, crowd.label))
    method_class = wc.find(method)

    def select_votes(n: int) -> wc.Crowd:
        vocabularies = {"tasks": crowd.tasks, "workers": crowd.workers, "classes": crowd.classes}
        return wc.Crowd.from_codes(task[:n], worker[:n], label[:n], duplicates="last", **vocabularies)

    def fit(votes: wc.Crowd) -> wc.Aggregator:
        with ignore_fit_warnings():
            return method_class().fit(votes)

    first, last = crowd.n_votes // 2, int(until * crowd.n_votes)
    live, schedule, n_fitted = LiveModel(method_class(), n_classes=crowd.n_classes), RefitSchedule(), first
    live.load_snapshot(FitSnapshot.from_fit(fit(select_votes(first)), select_votes(first)))
    rows = []
    for n in range(first, last):
        votes_on_task = {**live.votes_on(int(task[n])), int(worker[n]): int(label[n])}
        live.update_votes({int(task[n]): votes_on_task})
        if n + 1 - n_fitted < schedule.interval and n + 1 < last:
            continue
        started_at = time.perf_counter()
        votes = select_votes(n + 1)
        batch = fit(votes)
        seconds = time.perf_counter() - started_at
        is_changed = live.posterior.argmax(axis=1) != batch.posterior_.argmax(axis=1)
        changed_share = float(is_changed[votes.votes_per_task > 0].mean())
        rows.append((n + 1 - n_fitted, changed_share, seconds))
        schedule.update(n + 1 - n_fitted, changed_share, n + 1)
        live.load_snapshot(FitSnapshot.from_fit(batch, votes))
        n_fitted = n + 1
        assert (live.posterior == batch.posterior_).all()
        if len(rows) % 100 == 0:
            print(f"{n + 1:,} of {last:,} votes, {len(rows):,} fits, {1 - changed_share:.4f}", file=sys.stderr)
    intervals, changed_shares, durations = np.array(rows).T
    figures = {
        "crowd": name, "method": method, "votes": crowd.n_votes, "replayed": last - first, "fits": len(rows),
        "votes between fits": float(np.median(intervals)), "mean": float(1 - changed_shares.mean()),
        "fits that changed 1 % or less": float((changed_shares <= 0.01).mean()), "worst": float(1 - changed_shares.max()),
        "votes per second at this schedule": float(intervals.sum() / ((1 + PAUSE_FACTOR) * durations.sum())),
        "accuracy": float((batch.labels_.reindex(dataset.truth.index) == dataset.truth).mean()),
    }  # fmt: skip
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
