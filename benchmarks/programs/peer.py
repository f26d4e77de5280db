"""Votes on disk to labels in memory with crowd-kit: ``peer.py VOTES TRUTH MAX_ITER``."""

import sys

import pandas as pd
from clock import Clock
from crowdkit.aggregation import DawidSkene

votes, truth, max_iter = sys.argv[1:]
clock = Clock()
frame = pd.read_parquet(votes)
labels = DawidSkene(n_iter=int(max_iter), tol=0).fit_predict(frame)
clock.report(labels, truth, n_votes=len(frame), n_iter=int(max_iter))
