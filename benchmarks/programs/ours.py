"""Votes on disk to labels in memory with wisecrowd: ``ours.py VOTES TRUTH METHOD PARAMETERS``, the last as JSON."""

import json
import sys
import warnings

import pyarrow.parquet  # noqa: F401  # wisecrowd imports what it needs when it needs it; here, before the clock starts
from clock import Clock

import wisecrowd
import wisecrowd.kernels.object_cache
from wisecrowd import read
from wisecrowd.io import FORMATS

votes, truth, name, parameters = sys.argv[1:]
method = getattr(wisecrowd, name)(**json.loads(parameters))
warnings.simplefilter("ignore")  # a fixed number of iterations is what was asked for
_ = [FORMATS[name].reader for name in ("csv", "parquet")]
clock = Clock()
crowd = read(votes)
fitted = method.fit(crowd)
clock.report(fitted.labels_, truth, n_votes=crowd.n_votes, n_iter=getattr(fitted, "n_iter_", 0))
