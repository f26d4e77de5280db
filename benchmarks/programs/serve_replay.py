"""Replay a public crowd vote by vote: ``serve_replay.py DATASET METHOD UNTIL``. Prints figures as JSON.

Needs WISECROWD_DATA. The first half of the votes, in random order, is there from the start; the others come one by one, up to
the share UNTIL of all, and fits are made at the pace that the service would choose. Labels as the service has them are compared
with those of each fit just before it is taken over, when they have had most time to drift; then they must be the same.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

import wisecrowd as wc
from wisecrowd.em.live import FitSnapshot, LiveModel
from wisecrowd.errors import ignore_fit_warnings
from wisecrowd.service.question_state import REST
from wisecrowd.service.refit_schedule import RefitSchedule


def main(name: str, method: str, until: float) -> None:
    with ignore_fit_warnings():
        made = wc.load_dataset(name)
    crowd = made.crowd
    order = np.random.default_rng(0).permutation(crowd.n_votes)
    task, worker, label = (codes[order] for codes in (crowd.task, crowd.worker, crowd.label))
    kind = wc.find(method)

    def votes(n: int) -> wc.Crowd:
        vocabularies = {"tasks": crowd.tasks, "workers": crowd.workers, "classes": crowd.classes}
        return wc.Crowd.from_codes(task[:n], worker[:n], label[:n], duplicates="last", **vocabularies)

    def fit(so_far: wc.Crowd) -> wc.Aggregator:
        with ignore_fit_warnings():
            return kind().fit(so_far)

    first, last = crowd.n_votes // 2, int(until * crowd.n_votes)
    live, pace, known = LiveModel(kind(), n_classes=crowd.n_classes), RefitSchedule(), first
    live.load_snapshot(FitSnapshot.from_fit(fit(votes(first)), votes(first)))
    rows = []
    for n in range(first, last):
        standing = {int(task[n]): {**live.votes_on(int(task[n])), int(worker[n]): int(label[n])}}
        live.update_votes(standing)
        if n + 1 - known < pace.votes and n + 1 < last:
            continue
        begun = time.perf_counter()
        so_far = votes(n + 1)
        batch = fit(so_far)
        seconds = time.perf_counter() - begun
        other = live.posterior.argmax(axis=1) != batch.posterior_.argmax(axis=1)
        changed = float(other[so_far.votes_per_task > 0].mean())
        rows.append((n + 1 - known, changed, seconds))
        pace.learn(n + 1 - known, changed, n + 1)
        live.load_snapshot(FitSnapshot.from_fit(batch, so_far))
        known = n + 1
        assert (live.posterior == batch.posterior_).all()
        if len(rows) % 100 == 0:
            print(f"{n + 1:,} of {last:,} votes, {len(rows):,} fits, {1 - changed:.4f}", file=sys.stderr)
    new, changed_by, taken = np.array(rows).T
    found = {
        "crowd": name, "method": method, "votes": crowd.n_votes, "replayed": last - first, "fits": len(rows),
        "votes from fit to fit": float(np.median(new)), "mean": float(1 - changed_by.mean()),
        "fits that changed 1 % or less": float((changed_by <= 0.01).mean()), "worst": float(1 - changed_by.max()),
        "votes a second that it follows": float(new.sum() / ((1 + REST) * taken.sum())),
        "accuracy": float((batch.labels_.reindex(made.truth.index) == made.truth).mean()),
    }  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
