"""Fit that may be killed at any time: ``scale_victim.py FOLDER ENGINE PASSES CHECKPOINT RESULT``.

Resumes from the checkpoint if there is one. RESULT is written at the end: a digest of the fitted arrays.
"""

import hashlib
import sys
import time

from wisecrowd import Crowd, DawidSkene
from wisecrowd.utils.files import write_json

folder, engine, passes, checkpoint, result = sys.argv[1:]
started = time.perf_counter()
fitted = DawidSkene(max_iter=int(passes), tol=0, engine=engine, checkpoint=checkpoint).fit(Crowd.open(folder))
digest = hashlib.sha256()
for array in (fitted.tally_, fitted.prior_, fitted.trace_):
    digest.update(array.tobytes())
seconds = time.perf_counter() - started
write_json(result, {"sha256": digest.hexdigest(), "passes": fitted.n_iter_, "seconds": seconds})
