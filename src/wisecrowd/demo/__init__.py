"""The demo's work: digits, a motley crowd, every method, and verdicts on the workers that are then checked."""

from wisecrowd.demo.run import Demo, run_demo

__all__ = ["Demo", "run_demo"]
