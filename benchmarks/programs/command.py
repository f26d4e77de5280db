"""A command of wisecrowd from the start of the interpreter to its end: ``command.py report votes.csv -o page.html -q``.

Prints seconds of the clock and of the processor, imports included, and the peak of the process in bytes.
"""

import json
import os
import resource
import sys
import time

from wisecrowd.cli import main

try:
    main()
except SystemExit as exit_:
    if exit_.code:
        raise
unit = 1 if sys.platform == "darwin" else 1024
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
figures = {"wall": time.time() - float(os.environ["BEGUN"]), "cpu": time.process_time(), "peak": peak}
print(json.dumps(figures))
