"""Votes in the form that the kernels read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.rows import are_codes
from wisecrowd.errors import UsageError

if TYPE_CHECKING:
    import scipy.sparse as sp


@dataclass(frozen=True, eq=False)
class Layout:
    """Votes sorted by task, each a pair of worker and label.

    Parameters
    ----------
    offset : ndarray of shape (n_tasks + 1,)
        Bounds of the tasks: the votes of task ``i`` are ``offset[i]:offset[i + 1]``. The first need not be zero.
    pair : ndarray of shape (n_votes,)
        Pair of each vote; longer when the layout is a slice of another.
    weight : ndarray or None
        Weight of each vote, as long as ``pair``; None when every vote counts once.
    n_pairs : int
        Number of pairs.
    is_checked : bool, default=False
        Whether the arrays are known to be valid and are never changed, so that `check` need not read them.

    Examples
    --------
    >>> layout = Layout(offset=np.array([0, 2, 3]), pair=np.array([0, 1, 1], dtype=np.int32), weight=None, n_pairs=2)
    >>> layout.n_tasks, layout.n_votes
    (2, 3)
    >>> layout.vote_matrix.toarray()
    array([[1., 1.],
           [0., 1.]])
    """

    offset: NDArray[np.int64]
    pair: NDArray[np.int32]
    weight: NDArray[np.float64] | None
    n_pairs: int
    is_checked: bool = False

    def check(self) -> None:
        """Check that bounds and codes are valid; the kernels would read and write beyond the end of an array otherwise.

        The result is cached unless somebody may change the arrays.

        Raises
        ------
        UsageError
            If an array has a wrong shape or type, or a value is out of range.

        Examples
        --------
        >>> Layout(np.array([0, 1]), np.array([-1], dtype=np.int32), None, n_pairs=2).check()
        Traceback (most recent call last):
            ...
        wisecrowd.errors.UsageError: a layout needs pairs in 0…1; got -1…-1
        """
        if self.is_checked:
            return
        offset, pair, weight = self.offset, self.pair, self.weight
        for name, array, kinds in (("offset", offset, "iu"), ("pair", pair, "iu"), ("weight", weight, "f")):
            if array is not None and (array.ndim != 1 or array.dtype.kind not in kinds):
                raise UsageError(
                    f"{name} of a layout must be a one-dimensional array of "
                    f"{'integers' if kinds == 'iu' else 'numbers'}; got {array.dtype} of shape {array.shape}"
                )
        if not (
            len(offset) > 0 and offset[0] >= 0 and int(offset[-1]) <= len(pair) and (offset[1:] >= offset[:-1]).all()
        ):
            raise UsageError(f"offset of a layout must be ascending positions in 0…{len(pair)}")
        if weight is not None and len(weight) != len(pair):
            raise UsageError(f"a layout needs one weight per vote: {len(pair):,}; got {len(weight):,}")
        votes = pair[int(offset[0]) : int(offset[-1])]
        if not are_codes(votes, self.n_pairs):
            raise UsageError(f"a layout needs pairs in 0…{self.n_pairs - 1}; got {votes.min()}…{votes.max()}")
        if not any(array is not None and array.flags.writeable for array in (offset, pair, weight)):
            vars(self)["is_checked"] = True

    @property
    def n_tasks(self) -> int:
        """Number of tasks, including tasks without votes."""
        return len(self.offset) - 1

    @property
    def n_votes(self) -> int:
        """Number of votes of these tasks."""
        return int(self.offset[-1] - self.offset[0])

    @property
    def total_weight(self) -> float:
        """Total weight of the votes of these tasks."""
        return self.n_votes if self.weight is None else float(self.weight[self.offset[0] : self.offset[-1]].sum())

    @cached_property
    def has_votes(self) -> NDArray[np.bool_]:
        """Mask of the tasks that have votes."""
        return np.diff(self.offset) > 0

    @cached_property
    def vote_task(self) -> NDArray[np.int64]:
        """Task of each vote, of shape (n_votes,)."""
        return np.repeat(np.arange(self.n_tasks), np.diff(self.offset))

    @cached_property
    def vote_matrix(self) -> sp.csr_array:
        """Sparse matrix (tasks × pairs) of the weights of the votes, with which the reference kernels multiply."""
        import scipy.sparse as sp  # a fifth of the time that `import pandas` takes

        self.check()  # products with a sparse matrix do not check its indices
        votes = slice(self.offset[0], self.offset[-1])
        weight = np.ones(self.n_votes) if self.weight is None else self.weight[votes]
        shape = (self.n_tasks, self.n_pairs)
        return sp.csr_array((weight, self.pair[votes], self.offset - self.offset[0]), shape=shape)

    def slice_tasks(self, start: int, stop: int) -> Layout:
        """Return the layout of consecutive tasks over the same pairs, without copying.

        Parameters
        ----------
        start, stop : int
            Bounds of the tasks.

        Returns
        -------
        Layout
            The tasks ``start:stop``.

        Examples
        --------
        >>> layout = Layout(np.array([0, 2, 3]), np.array([0, 1, 1], dtype=np.int32), None, 2)
        >>> layout.slice_tasks(1, 2).vote_matrix.toarray()
        array([[0., 1.]])
        """
        return Layout(self.offset[start : stop + 1], self.pair, self.weight, self.n_pairs, self.is_checked)
