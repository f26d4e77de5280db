"""Votes on disk to labels in memory with wisecrowd: ``ours.py VOTES TRUTH MAX_ITER TOL N_JOBS``."""

import sys

from clock import Clock

from wisecrowd import DawidSkene, read

votes, truth, max_iter, tol, n_jobs = sys.argv[1:]
clock = Clock()
crowd = read(votes)
method = DawidSkene(max_iter=int(max_iter), tol=float(tol), n_jobs=int(n_jobs)).fit(crowd)
clock.report(method.labels_, truth, n_votes=crowd.n_labels, n_iter=method.n_iter_)
