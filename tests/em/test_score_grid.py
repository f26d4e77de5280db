"""Grid of standard normal scores."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.em.score_grid import make_score_grid


@pytest.mark.parametrize("n_nodes", [21, 31, 61])
def test_moments_are_those_of_a_standard_normal_variable(n_nodes: int) -> None:
    nodes, weights = make_score_grid(n_nodes)
    assert np.allclose(
        [weights.sum(), weights @ nodes, weights @ nodes**2, weights @ nodes**4], [1, 0, 1, 3], atol=0.02
    )
