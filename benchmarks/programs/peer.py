"""Votes on disk to labels in memory with crowd-kit: ``peer.py VOTES TRUTH METHOD PARAMETERS``, the last as JSON."""

import json
import sys
import warnings

import crowdkit.aggregation
import pandas as pd
import pyarrow.parquet  # noqa: F401  # what pandas would import when it reads
from clock import Clock

votes, truth, name, parameters = sys.argv[1:]
options = json.loads(parameters)
method = getattr(crowdkit.aggregation, name)(**options)
warnings.simplefilter("ignore")
clock = Clock()
frame = pd.read_parquet(votes)
labels = method.fit_predict(frame)
clock.report(labels, truth, n_votes=len(frame), n_iter=options.get("n_iter", 0))
