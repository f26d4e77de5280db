"""Accuracy of labels while votes are few: ``serve_early.py DATASET``. Prints figures as JSON.

Needs WISECROWD_DATA. The first votes in random order are used; the accuracy is that on tasks with votes.
"""

from __future__ import annotations

import json
import sys

import numpy as np

import wisecrowd as wc
from wisecrowd.errors import ignore_fit_warnings

SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
METHODS = ("majority-vote", "one-coin", "dawid-skene", "ibcc")


def main(name: str) -> None:
    with ignore_fit_warnings():
        dataset = wc.load_dataset(name)
    crowd = dataset.crowd
    order = np.random.default_rng(0).permutation(crowd.n_votes)
    rows = []
    for share in SHARES:
        n_votes = int(share * crowd.n_votes)
        part = crowd.take(np.isin(np.arange(crowd.n_votes), order[:n_votes]))
        tasks = part.tasks[part.votes_per_task > 0]
        truth = dataset.truth[dataset.truth.index.isin(tasks)]
        row = {"crowd": name, "votes": n_votes, "votes per task": n_votes / len(tasks)}
        with ignore_fit_warnings():
            for method in METHODS:
                labels = wc.find(method)().fit(part).labels_
                row[method] = float((labels.reindex(truth.index) == truth).mean())
        rows.append(row)
    print(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main(sys.argv[1])
