"""What labels are worth while votes are few: ``serve_early.py DATASET``. Prints figures as JSON lines.

Needs WISECROWD_DATA. Of the votes, in random order, the first so many are there; accuracy is over tasks that have a vote.
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
        made = wc.load_dataset(name)
    crowd = made.crowd
    order = np.random.default_rng(0).permutation(crowd.n_votes)
    rows = []
    for share in SHARES:
        kept = order[: int(share * crowd.n_votes)]
        so_far = crowd.take(np.isin(np.arange(crowd.n_votes), kept))
        voted = so_far.tasks[so_far.votes_per_task > 0]
        truth = made.truth[made.truth.index.isin(voted)]
        found = {"crowd": name, "votes": len(kept), "votes for each task": len(kept) / len(voted)}
        with ignore_fit_warnings():
            for method in METHODS:
                found[method] = float((wc.find(method)().fit(so_far).labels_.reindex(truth.index) == truth).mean())
        rows.append(found)
    print(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main(sys.argv[1])
