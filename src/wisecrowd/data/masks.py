"""Votes that are masks: every worker marks the pixels of an image that belong to something."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.answers_by_task import AnswersByTask, compute_answers_digest, order_by_task
from wisecrowd.data.arrow_tables import DataFrameLike, as_table
from wisecrowd.data.mask_runs import MaskRuns, parse_masks, read_mask_column
from wisecrowd.data.rows import as_codes
from wisecrowd.errors import InputError, check_choice, preview
from wisecrowd.utils.text import count_noun

#: Pixels of all tasks together; positions of pixels are 64-bit numbers with six bits to spare.
MAX_PIXELS = 1 << 56


class MaskCrowd(AnswersByTask):
    """Immutable masks of workers, one per task and worker, sorted by task and worker.

    Mask ``n`` is by worker ``workers[worker[n]]`` on task ``tasks[task[n]]``. Masks are stored as runs of pixels, never as
    images. Build a crowd with `from_frame` or `from_arrays`.

    Parameters
    ----------
    task, worker : array-like of shape (n_votes,)
        Positions in ``tasks`` and ``workers``.
    masks : MaskRuns
        Masks; an empty mask is an answer, too.
    tasks, workers : Index
        Vocabularies.
    height, width : array-like of shape (n_tasks,), default=None
        Sizes of the images. By default, those of the masks.

    Raises
    ------
    InputError
        If codes are invalid, a worker has two masks on a task, or masks of a task differ in size.

    Examples
    --------
    >>> rows = {"task": ["i1", "i1"], "worker": ["ann", "bob"], "mask": ["13", "112"], "height": [2, 2], "width": [2, 2]}
    >>> MaskCrowd.from_frame(rows)
    MaskCrowd(2 masks: 1 task x 2 workers, 50% of the pixels marked)
    """

    answer_type: ClassVar[AnswerType] = "masks"

    def __init__(
        self,
        task: ArrayLike,
        worker: ArrayLike,
        masks: MaskRuns,
        *,
        tasks: pd.Index,
        workers: pd.Index,
        height: ArrayLike | None = None,
        width: ArrayLike | None = None,
    ) -> None:
        self.tasks, self.workers = vocab.as_vocabulary(tasks, "task"), vocab.as_vocabulary(workers, "worker")
        task_codes = as_codes(task, len(self.tasks), "task")
        worker_codes = as_codes(worker, len(self.workers), "worker")
        if not len(task_codes) == len(worker_codes) == len(masks):
            raise InputError("task, worker and masks need one value per answer")
        order = order_by_task(
            task_codes, worker_codes, self.tasks, self.workers,
            advice="Keep one mask each, or choose duplicates='first' or 'last'; for several classes, make a task of each image and "
            "class",
        )  # fmt: skip
        self.task, self.worker = task_codes[order], worker_codes[order]
        sizes = self._find_sizes(masks, task_codes, worker_codes, height, width)
        self.height, self.width = sizes
        if float((sizes[0].astype(np.float64) * sizes[1]).sum()) > MAX_PIXELS:
            raise InputError(f"the images have more than {MAX_PIXELS:,} pixels; check their sizes")
        runs = masks.take(order)
        self.masks = MaskRuns(runs.offset, runs.start, runs.end, self.height[self.task], self.width[self.task])
        for array in (self.task, self.worker, self.height, self.width, runs.offset, runs.start, runs.end):
            array.setflags(write=False)

    def _find_sizes(
        self, masks: MaskRuns, task: NDArray[np.int32], worker: NDArray[np.int32], height: Any, width: Any
    ) -> NDArray[np.int64]:
        """Return height and width of every task; all masks of a task agree, and empty masks need no size."""
        sizes = np.zeros((2, self.n_tasks), dtype=np.int64)
        if height is not None and width is not None:
            sizes[:] = np.asarray(height), np.asarray(width)
        own = np.stack([masks.height, masks.width])
        has_size = (own > 0).all(axis=0)
        largest = sizes.copy()
        for axis in range(2):
            np.maximum.at(largest[axis], task[has_size], own[axis, has_size])
        differs = has_size & (own != largest[:, task]).any(axis=0)
        if differs.any():
            row = int(np.flatnonzero(differs)[0])
            raise InputError(
                f"{count_noun(int(differs.sum()), 'mask')} of another size than the others of the task, for example "
                f"{own[0, row]} x {own[1, row]} of worker {preview([self.workers[worker[row]]])} on task "
                f"{preview([self.tasks[task[row]]])}, where another has {largest[0, task[row]]} x "
                f"{largest[1, task[row]]} (height x "
                "width). Masks of a task need the size of its image"
            )
        return largest

    @classmethod
    def from_frame(
        cls,
        frame: DataFrameLike,
        *,
        task: str = "task",
        worker: str = "worker",
        mask: str = "mask",
        height: str | None = "height",
        width: str | None = "width",
        tasks: Sequence[Any] | pd.Index | None = None,
        workers: Sequence[Any] | pd.Index | None = None,
        duplicates: Literal["error", "first", "last"] = "error",
    ) -> MaskCrowd:
        """Build a crowd from a table with one mask per row.

        Parameters
        ----------
        frame : DataFrame, Arrow table or dict of columns
            Table of pandas, polars, pyarrow, duckdb, or any other library that exports Arrow streams.
        task, worker, mask : str
            Names of the columns. A mask is a COCO dictionary (size and counts) or its JSON text, or a list or compressed
            text of counts. A missing or empty mask is one without pixels.
        height, width : str or None
            Names of the columns with the sizes of images, for masks without a size. They may be absent.
        tasks, workers : sequence or Index, default=None
            Vocabularies in their order.
        duplicates : {"error", "first", "last"}, default="error"
            Treatment of several masks of one worker on one task.

        Returns
        -------
        MaskCrowd

        Raises
        ------
        InputError
            If a column is absent, an id is missing, or a cell holds no mask.
        """
        check_choice("duplicates", duplicates, ("error", "first", "last"))
        table = as_table(frame, [name for name in (task, worker, mask, height, width) if name is not None])
        absent = [name for name in (task, worker, mask) if name not in table.column_names]
        if absent:
            raise InputError(
                f"no column {preview(absent)} among {preview(table.column_names, 12)}. Name your columns, for example "
                'task="image", worker="annotator", mask="segmentation"'
            )
        task_codes, task_index = vocab.encode_ids(table[task], "task", tasks)
        worker_codes, worker_index = vocab.encode_ids(table[worker], "worker", workers)
        sizes = [table[name].to_pylist() if name in table.column_names else None for name in (height, width)]
        masks = parse_masks(read_mask_column(table[mask]), *sizes)
        rows = np.arange(len(masks))
        if duplicates != "error" and len(rows):
            key = task_codes.astype(np.int64) * len(worker_index) + worker_codes
            _, rows = np.unique(key if duplicates == "first" else key[::-1], return_index=True)
            rows = np.sort(rows if duplicates == "first" else len(key) - 1 - rows)
        return cls(task_codes[rows], worker_codes[rows], masks.take(rows), tasks=task_index, workers=worker_index)

    @classmethod
    def from_arrays(cls, task: Sequence[Any], worker: Sequence[Any], masks: Sequence[Any]) -> MaskCrowd:
        """Build a crowd from arrays of pixels.

        Parameters
        ----------
        task, worker : sequence
            Ids, one per mask.
        masks : sequence of array-like of shape (height, width)
            Pixels other than 0 belong to a mask.

        Returns
        -------
        MaskCrowd

        Examples
        --------
        >>> MaskCrowd.from_arrays(["i1", "i1"], ["ann", "bob"], [np.eye(2), np.ones((2, 2))]).masks.area.tolist()
        [2, 4]
        """
        table = as_table({"task": list(task), "worker": list(worker)}, ["task", "worker"])
        task_codes, task_index = vocab.encode_ids(table["task"], "task", None)
        worker_codes, worker_index = vocab.encode_ids(table["worker"], "worker", None)
        return cls(task_codes, worker_codes, MaskRuns.from_arrays(masks), tasks=task_index, workers=worker_index)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the contents; equal crowds have equal digests."""
        runs = (self.masks.offset, self.masks.start, self.masks.end)
        arrays = (self.task, self.worker, self.height, self.width, *runs)
        return compute_answers_digest("masks", (self.tasks, self.workers), arrays)

    def take(self, rows: ArrayLike) -> MaskCrowd:
        """Select masks; the vocabularies and the sizes of images stay the same.

        Parameters
        ----------
        rows : array-like
            Mask, or positions, of the answers to keep.

        Returns
        -------
        MaskCrowd
        """
        selected = self._select_rows(rows)
        return MaskCrowd(
            self.task[selected], self.worker[selected], self.masks.take(selected),
            tasks=self.tasks, workers=self.workers, height=self.height, width=self.width,
        )  # fmt: skip

    def to_frame(self) -> pd.DataFrame:
        """Convert the votes to a table.

        Returns
        -------
        DataFrame
            Columns task, worker and mask, a JSON text of COCO's run-length encoding.
        """
        columns = {"task": self.tasks.take(self.task), "worker": self.workers.take(self.worker)}
        return pd.DataFrame({**columns, "mask": np.array(self.masks.to_texts(), dtype=object)})

    def __repr__(self) -> str:
        n_pixels = float((self.masks.height * self.masks.width).sum())
        share = float(self.masks.area.sum()) / n_pixels if n_pixels else 0.0
        return (
            f"MaskCrowd({count_noun(self.n_votes, 'mask')}: {count_noun(self.n_tasks, 'task')} x "
            f"{count_noun(self.n_workers, 'worker')}, {share:.0%} of the pixels marked)"
        )
