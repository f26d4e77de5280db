"""Replay a public crowd vote by vote: ``serve_replay.py DATASET METHOD STEPS``. Prints figures as JSON.

Needs WISECROWD_DATA. After every step, labels as the service has them are compared with those of a fit to all votes so far.
"""

from __future__ import annotations

import json
import sys

import numpy as np

import wisecrowd as wc
from wisecrowd.errors import unwarned
from wisecrowd.live import Known, Live
from wisecrowd.serve._topics import LEAST, SHARE


def main(name: str, method: str, steps: int) -> None:
    crowd = wc.load_dataset(name).crowd
    order = np.random.default_rng(0).permutation(crowd.n_labels)
    task, worker, label = (codes[order] for codes in (crowd.task, crowd.worker, crowd.label))
    kind = wc.find(method)
    live = Live(kind(), n_classes=crowd.n_classes)
    live.expect(crowd.n_tasks)
    fitted = n = n_fits = 0
    agreed, kept = [], []
    before = None
    for end in np.linspace(0, crowd.n_labels, steps + 1).astype(int)[1:]:
        votes: dict[int, dict[int, int]] = {}
        for one, who, what in zip(task[n:end].tolist(), worker[n:end].tolist(), label[n:end].tolist(), strict=True):
            votes.setdefault(one, dict(live.votes_on(one)))[who] = what
        live.change(votes)
        n = int(end)
        so_far = wc.Crowd(
            task[:n],
            worker[:n],
            label[:n],
            tasks=crowd.tasks,
            workers=crowd.workers,
            classes=crowd.classes,
            duplicates="last",
        )
        voted = so_far.labels_per_task > 0
        with unwarned():
            batch = kind().fit(so_far)
        now = batch.posterior_.argmax(axis=1)
        agreed.append(float((live.posterior.argmax(axis=1) == now)[voted].mean()))
        if before is not None:
            kept.append(float((before[0] == now)[before[1]].mean()))
        before = now, voted
        if n - fitted >= max(LEAST, SHARE * fitted):
            live.hold(Known.of(batch, so_far))
            fitted, n_fits = n, n_fits + 1
            same = float(np.abs(live.posterior - batch.posterior_).max())
            assert same == 0, same
    half = len(agreed) // 2
    truth = wc.load_dataset(name).truth
    found = {
        "crowd": name, "method": method, "votes": crowd.n_labels, "moments": len(agreed), "fits": n_fits,
        "mean": np.mean(agreed), "worst, second half": min(agreed[half:]),
        "moments with 99 % or more, second half": np.mean(np.array(agreed[half:]) >= 0.99),
        "stability of the fit, second half": np.mean(kept[half:]), "worst stability": min(kept[half:]),
        "accuracy": None if truth is None else float((batch.labels_.reindex(truth.index) == truth).mean()),
    }  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
