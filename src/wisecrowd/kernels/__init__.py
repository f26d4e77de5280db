"""Sums over votes that every model is built from.

Every model in which a worker votes with probabilities that depend on the true class alternates between two sums: the
*evidence* of a task's votes for each class, and the *tally* of posteriors for each (worker, label) pair. Both run over
the pairs that occur in the data, so a table has one row per distinct pair, never workers x classes x classes.

`expect` computes both sums in one call, `posterior` and `tally` compute one of them. There are two equivalent
implementations: `reference` uses products with a sparse matrix, `compiled` is one pass over the votes in machine code.
The compiled one is chosen for large crowds (see `COMPILED_MIN_CELLS`).

Examples
--------
>>> import numpy as np
>>> from wisecrowd.data.layout import Layout
>>> layout = Layout(offset=np.array([0, 2, 3]), pair=np.array([0, 1, 1], dtype=np.int32), weight=None, n_pairs=2)
>>> label_probs = np.array([[0.9, 0.2], [0.8, 0.4]])  # P(label of the pair | class)
>>> posterior(layout, np.array([0.5, 0.5]), label_probs).round(3)
array([[0.9 , 0.1 ],
       [0.667, 0.333]])
"""

from wisecrowd.kernels.dispatch import COMPILED_MIN_CELLS, expect, posterior, tally
from wisecrowd.kernels.expectation import MIN_PROB, Expectation

__all__ = ["COMPILED_MIN_CELLS", "MIN_PROB", "Expectation", "expect", "posterior", "tally"]
