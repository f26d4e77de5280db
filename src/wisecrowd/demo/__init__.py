"""The demo's work: digits, a motley crowd, every method, and verdicts on the workers that are then checked.

>>> from wisecrowd.demo import run_demo
>>> demo = run_demo()
>>> demo.crowd.shape
(1797, 40)
"""

from wisecrowd.demo.run import Demo, run_demo

__all__ = ["Demo", "run_demo"]
