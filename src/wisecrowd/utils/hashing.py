"""Pseudo-random numbers computed from keys, independent of the order of computation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: 64-bit keys to hash.
Keys = NDArray[np.uint64]

#: Increment of SplitMix64: 2^64 divided by the golden ratio, made odd.
GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def mix_bits(state: Keys) -> Keys:
    """Hash 64-bit integers with the mixing function of SplitMix64.

    Parameters
    ----------
    state : ndarray of uint64
        Keys.

    Returns
    -------
    ndarray of uint64
        One hash per key; hashes of similar keys are uncorrelated.

    Examples
    --------
    >>> mix_bits(np.arange(2, dtype=np.uint64)).tolist()
    [16294208416658607535, 10451216379200822465]
    """
    with np.errstate(over="ignore"):
        state = state + GOLDEN_GAMMA
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))


def to_unit_interval(state: Keys) -> NDArray[np.float64]:
    """Map 64-bit integers to numbers in [0, 1) by their upper 53 bits.

    Parameters
    ----------
    state : ndarray of uint64
        Hashes.

    Returns
    -------
    ndarray of float64
        Uniform numbers if the hashes are uniform.

    Examples
    --------
    >>> to_unit_interval(np.array([0, 2**63], dtype=np.uint64)).tolist()
    [0.0, 0.5]
    """
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53
