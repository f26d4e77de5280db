"""Processes that train one model together, and the messages between them.

A group exists if another library has initialised one (Ray Train does so for its workers) or if a launcher such as
``torchrun`` set the environment variables of one. Otherwise a process is a group of its own, and nothing here costs
time. Every process holds all the data, draws the same random numbers and takes the same steps; only the computation
of a batch is divided.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.errors import WisecrowdError
from wisecrowd.nn.backend import import_torch
from wisecrowd.utils.progress import read_launcher_rank

if TYPE_CHECKING:
    import torch
    from torch import Tensor

#: Environment variable with the id of the process that joined a group; its children inherit the launcher's variables,
#: but are not members.
MEMBER_VARIABLE = "WISECROWD_MEMBER"
#: Message for processes that hold different data.
DIFFERENT_DATA = "features or votes differ; give every process all of the data, since the work is divided automatically"


class ProcessGroupError(WisecrowdError, RuntimeError):
    """Failure of communication between the processes of a group, or different work in them.

    Examples
    --------
    >>> issubclass(ProcessGroupError, WisecrowdError)
    True
    """


@dataclass(frozen=True)
class ProcessGroup:
    """Processes that train together, as seen by one of them.

    Attributes
    ----------
    rank : int
        Number of this process.
    size : int
        Number of processes.

    Examples
    --------
    >>> ProcessGroup(rank=1, size=3).own_rows(8), ProcessGroup(rank=2, size=3).own_rows(2)
    (slice(2, 5, None), None)
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """True for the process that writes files."""
        return self.rank == 0

    def own_rows(self, n_rows: int) -> slice | None:
        """Return the rows of a batch that this process computes.

        Parameters
        ----------
        n_rows : int
            Number of rows in the batch.

        Returns
        -------
        slice or None
            None if there are fewer rows than processes.
        """
        if n_rows < self.size:
            return None
        return slice(n_rows * self.rank // self.size, n_rows * (self.rank + 1) // self.size)

    # ------------------------------------------------------------------ messages

    def sum(self, part: Tensor) -> Tensor:
        """Return the sum of a tensor over all processes, with the same bits in each.

        Parameters
        ----------
        part : Tensor
            Summand of this process.

        Returns
        -------
        Tensor
        """
        total = part.detach().clone(memory_format=import_torch().contiguous_format)
        with _translate_errors():
            import_torch().distributed.all_reduce(total)
        return total

    def gather(self, part: Tensor) -> list[Tensor]:
        """Return the tensors of all processes.

        Parameters
        ----------
        part : Tensor
            Tensor of this process; those of the others have the same shape.

        Returns
        -------
        list of Tensor
            One tensor per process, by rank.
        """
        parts = [import_torch().empty_like(part) for _ in range(self.size)]
        with _translate_errors():
            import_torch().distributed.all_gather(parts, part.contiguous())
        return parts

    def broadcast(self, values: NDArray[Any], device: torch.device) -> NDArray[Any]:
        """Return the values of the first process.

        Parameters
        ----------
        values : ndarray
            Values of this process.
        device : torch.device
            Device through which they are sent.

        Returns
        -------
        ndarray
        """
        if self.size == 1:
            return values
        message = import_torch().from_numpy(np.array(values)).to(device)
        with _translate_errors():
            import_torch().distributed.broadcast(message, src=0)
        return np.asarray(message.cpu().numpy())

    def wait(self) -> None:
        """Block until all processes have called this method."""
        if self.size > 1:
            self.sum(import_torch().zeros(1, device=_message_device()))

    def check_equal(self, difference: str, *objects: Any) -> None:
        """Raise an error unless all processes hold equal objects.

        Parameters
        ----------
        difference : str
            Description of the difference and its remedy, for the error message.
        *objects : object
            Tensors and arrays are compared by their bits, everything else by its ``repr``.

        Raises
        ------
        ProcessGroupError
            If the objects differ.
        """
        if self.size == 1:
            return
        digest = import_torch().tensor([compute_digest(objects)], device=_message_device())
        if len({int(other) for other in self.gather(digest)}) > 1:
            raise ProcessGroupError(f"the {self.size} processes of the group do different work: {difference}")

    # ------------------------------------------------------------------ gradients

    def sum_gradients(self, dense: Sequence[Tensor], sparse: Sequence[Tensor], loss: Tensor) -> Tensor:
        """Replace gradients by their sums over all processes.

        Parameters
        ----------
        dense, sparse : sequence of Tensor
            Parameters with dense and with sparse gradients. Dense gradients are sent as one vector.
        loss : Tensor
            Loss of this process.

        Returns
        -------
        Tensor
            Sum of the losses.
        """
        torch = import_torch()
        # Where no process has a gradient, the parameter gets none: an optimiser would apply weight decay to it otherwise.
        has_gradient = torch.tensor([float(parameter.grad is not None) for parameter in dense]).to(loss)
        parts = [torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in dense]
        vector = self.sum(torch.cat([*(part.flatten() for part in parts), has_gradient, loss.detach().reshape(1)]))
        *sums, counts, total = torch.split(vector, [*(parameter.numel() for parameter in dense), len(dense), 1])
        for parameter, gradient, count in zip(dense, sums, counts.tolist(), strict=True):
            parameter.grad = gradient.view_as(parameter).to(parameter) if count else None
        self._sum_sparse_gradients(sparse)
        return total[0]

    def _sum_sparse_gradients(self, tables: Sequence[Tensor]) -> None:
        """Sum sparse gradients over the touched rows, never over whole tables."""
        torch = import_torch()
        if not tables:
            return
        gradients = [None if table.grad is None else table.grad.coalesce() for table in tables]
        sizes = [-1 if gradient is None else gradient._nnz() for gradient in gradients]
        counts = torch.stack(
            self.gather(torch.tensor(sizes, device=tables[0].device))
        ).T.tolist()  # (tables, processes)
        for table, gradient, n_rows in zip(tables, gradients, counts, strict=True):
            most = max(n_rows)
            if most < 0:
                continue
            rows = torch.zeros(most, dtype=torch.int64, device=table.device)
            values = table.new_zeros(most, *table.shape[1:])
            if gradient is not None:
                rows[: gradient._nnz()], values[: gradient._nnz()] = gradient.indices()[0], gradient.values()
            ends = [max(number, 0) for number in n_rows]
            all_rows = torch.cat([part[:end] for part, end in zip(self.gather(rows), ends, strict=True)])
            all_values = torch.cat([part[:end] for part, end in zip(self.gather(values), ends, strict=True)])
            table.grad = torch.sparse_coo_tensor(
                all_rows[None], all_values, table.shape, check_invariants=False
            ).coalesce()


#: Group of a process that trains alone.
SINGLE_PROCESS = ProcessGroup()


def current_process_group() -> ProcessGroup:
    """Return the group of this process, which joins it on the first call.

    Returns
    -------
    ProcessGroup

    Examples
    --------
    >>> current_process_group()
    ProcessGroup(rank=0, size=1)
    """
    if os.environ.get(MEMBER_VARIABLE, str(os.getpid())) != str(os.getpid()):
        return SINGLE_PROCESS
    distributed = sys.modules.get("torch.distributed")  # not imported: no group can exist
    if distributed is None or not (distributed.is_available() and distributed.is_initialized()):
        if (read_launcher_rank() or (0, 1))[1] == 1:
            return SINGLE_PROCESS
        _join_group()
    distributed = import_torch().distributed
    return ProcessGroup(distributed.get_rank(), distributed.get_world_size())


def _join_group() -> None:
    """Join the processes of the launcher: over gloo, and between GPUs over nccl."""
    torch = import_torch()
    if not torch.distributed.is_available():
        raise ProcessGroupError(
            "this build of torch does not support several processes; start a single one, without torchrun"
        )
    backend = "gloo"
    if torch.cuda.is_available() and torch.distributed.is_nccl_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    with _translate_errors():
        torch.distributed.init_process_group(backend)
    os.environ[MEMBER_VARIABLE] = str(os.getpid())
    atexit.register(_leave_group)


def _leave_group() -> None:
    """Leave the group at the end of the process."""
    distributed = import_torch().distributed
    if distributed.is_initialized():
        distributed.destroy_process_group()


def _message_device() -> Any:
    """Return a device for tensors of no model: a group that another library initialised may support GPUs only."""
    torch = import_torch()
    backends = torch.distributed.get_backend_config()
    return torch.device("cpu" if "cpu" in backends else "cuda")


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise errors of torch about a missing process as `ProcessGroupError`."""
    try:
        yield
    except RuntimeError as error:
        raise ProcessGroupError(
            "another process of the group has ended or does not respond "
            f"({str(error).splitlines()[0][:200]}); restart all of them. With checkpoint=FOLDER, training resumes from the last "
            "checkpoint"
        ) from error


def compute_digest(objects: Iterable[Any]) -> int:
    """Return a number that differs whenever any object differs.

    Parameters
    ----------
    objects : iterable
        Tensors and arrays are compared by their bits, everything else by its ``repr``. Mappings are compared by item.

    Returns
    -------
    int
        56 bits, which fit into a torch integer.

    Examples
    --------
    >>> torch = import_torch()
    >>> compute_digest([{"weight": torch.ones(2)}, "adam"]) == compute_digest([{"weight": torch.ones(2)}, "adam"])
    True
    >>> compute_digest([torch.tensor([1.0])]) == compute_digest([torch.tensor([1.0000001])])
    False
    """
    digest = hashlib.blake2b(digest_size=7)
    for item in objects:
        parts = item if isinstance(item, Mapping) else {"": item}
        for name, part in parts.items():
            digest.update(f"{name} {_describe_content(part)}".encode())
    return int.from_bytes(digest.digest(), "big")


def _describe_content(part: Any) -> str:
    """Return a text that identifies an object; a tensor is summed by its bits in one pass, on its device."""
    torch = import_torch()
    if isinstance(part, torch.Tensor):
        flat = part.detach().contiguous().flatten()
        integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}.get(flat.element_size(), torch.uint8)
        return f"{tuple(part.shape)} {int(flat.view(integer).sum(dtype=torch.int64))}"
    if isinstance(part, np.ndarray):
        return f"{part.shape} {zlib.crc32(np.ascontiguousarray(part).data)}"
    return repr(part)
