"""Demo: every method on handwritten digits labelled by a simulated crowd, with ratings of the workers."""

from wisecrowd.demo.run import Demo, run_demo

__all__ = ["Demo", "run_demo"]
