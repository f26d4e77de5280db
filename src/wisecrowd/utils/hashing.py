"""Numbers that look drawn and follow from other numbers alone: chance without a sequence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def mix_bits(state: Keys) -> Keys:
    """Numbers that look unrelated, one for each number (the mixer of SplitMix64).

    >>> mix_bits(np.arange(2, dtype=np.uint64)).tolist()
    [16294208416658607535, 10451216379200822465]
    """
    with np.errstate(over="ignore"):
        state = state + GOLDEN_GAMMA
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))


def to_unit_interval(state: Keys) -> NDArray[np.float64]:
    """A number in [0, 1) for each, by its upper bits.

    >>> to_unit_interval(np.array([0, 2**63], dtype=np.uint64)).tolist()
    [0.0, 0.5]
    """
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53
