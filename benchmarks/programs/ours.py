"""Votes on disk to labels in memory with wisecrowd: ``ours.py VOTES TRUTH|- MAX_ITER TOL N_JOBS``."""

import sys

import wisecrowd as wc
from report import report

votes, truth, max_iter, tol, n_jobs = sys.argv[1:]
crowd = wc.read(votes)
method = wc.DawidSkene(max_iter=int(max_iter), tol=float(tol), n_jobs=int(n_jobs)).fit(crowd)
report(method.labels_, truth, n_votes=crowd.n_labels, n_iter=method.n_iter_)
