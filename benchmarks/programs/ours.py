"""Votes on disk to labels in memory with wisecrowd: ``ours.py VOTES TRUTH METHOD PARAMETERS [confidence]``.

The parameters are JSON. With ``confidence``, the confidence of the labels and their expected accuracy are computed, too.
"""

import json
import sys
import warnings

import pyarrow.parquet  # noqa: F401  # wisecrowd imports what it needs when it needs it; here, before the clock starts
import scipy.optimize
import scipy.special  # noqa: F401
from clock import Clock

import wisecrowd
import wisecrowd.kernels.object_cache
from wisecrowd import estimate_confidence, read
from wisecrowd.io import FORMATS

votes, truth, name, parameters, *extras = sys.argv[1:]
method = getattr(wisecrowd, name)(**json.loads(parameters))
warnings.simplefilter("ignore")  # a fixed number of iterations is what was asked for
_ = [FORMATS[name].reader for name in ("csv", "parquet")]
clock = Clock()
crowd = read(votes)
fitted = method.fit(crowd)
if extras:
    _ = estimate_confidence(fitted, crowd).accuracy
clock.report(fitted.labels_, truth, n_votes=crowd.n_votes, n_iter=getattr(fitted, "n_iter_", 0))
