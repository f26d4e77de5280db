"""Plots for notebooks and papers, in the style of the report.

Each function takes a result of wisecrowd, draws it with matplotlib on ``ax`` or on a new figure, and returns the Axes, or the
Figure if there are several panels. Nothing is shown or saved, and global settings of matplotlib do not change:

>>> from wisecrowd import diagnose_crowd, plot, simulate_crowd
>>> simulation = simulate_crowd(n_tasks=200, n_workers=12, votes_per_task=5)
>>> ax = plot.worker_map(diagnose_crowd(simulation.crowd))
>>> ax.set_title("Our workers")
Text(0.5, 1.0, 'Our workers')
>>> path = plot.save(ax, "workers.pdf")

Ids and labels are drawn literally, including dollar signs. Series differ by marker or dashes as well as by colour, so they can be
distinguished in greyscale and with any colour vision.
"""

from wisecrowd.plot._abilities import abilities, expertise
from wisecrowd.plot._agreement import agreement
from wisecrowd.plot._budget import budget
from wisecrowd.plot._calibration import calibration
from wisecrowd.plot._confusion import confusion
from wisecrowd.plot._curves import density, redundancy
from wisecrowd.plot._map import worker_map
from wisecrowd.plot._output import save
from wisecrowd.plot._roc import roc
from wisecrowd.plot._style import style
from wisecrowd.plot._training import training
from wisecrowd.plot._votes_per_worker import votes_per_worker

__all__ = [
    "abilities",
    "agreement",
    "budget",
    "calibration",
    "confusion",
    "density",
    "expertise",
    "redundancy",
    "roc",
    "save",
    "style",
    "training",
    "votes_per_worker",
    "worker_map",
]
