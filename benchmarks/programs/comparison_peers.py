"""Processor seconds of evalica and crowd-kit on comparisons in a Parquet file; runs in an environment that has them.

python comparison_peers.py NAME FILE
"""

from __future__ import annotations

import json
import sys
import time

import pandas as pd


def main() -> None:
    name, path = sys.argv[1:]
    frame = pd.read_parquet(path)
    if name == "evalica":
        import evalica

        left_wins = (frame["label"] == frame["left"]).tolist()
        winners = [evalica.Winner.X if won else evalica.Winner.Y for won in left_wins]
        left, right = frame["left"].tolist(), frame["right"].tolist()
        begin = time.process_time()
        scores = evalica.bradley_terry(left, right, winners).scores
    else:
        from crowdkit.aggregation import BradleyTerry, NoisyBradleyTerry

        votes = frame[["worker", "left", "right", "label"]]
        method = NoisyBradleyTerry(n_iter=10) if name == "crowd-kit noisy" else BradleyTerry(n_iter=100)
        begin = time.process_time()
        scores = method.fit_predict(votes)
    print(json.dumps({"seconds": time.process_time() - begin, "scores": pd.Series(scores).to_dict()}))


if __name__ == "__main__":
    main()
