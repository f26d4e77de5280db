"""Processes that train together: who they are, and what they tell each other. Nothing else in the library knows ranks.

A group exists when somebody began one (Ray Train does for its workers), or when a launcher such as ``torchrun`` says to
which one this process belongs; otherwise a process is a group of its own, and nothing here costs anything. Every
process has all the data, draws the same random numbers and takes the same steps; what is divided is the computing.
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
from wisecrowd.nn.backend import need_torch
from wisecrowd.utils.progress import launched

if TYPE_CHECKING:
    from torch import Tensor, device

#: Says to the children of a process that it, and not they, belongs to a group: they inherit what the launcher said.
MEMBER = "WISECROWD_MEMBER"
#: What is said of processes that were each given a share of the data, as other programs want it.
OTHER_DATA = "features or votes differ; give every process all of them, and the work is divided among them"


class TeamError(WisecrowdError, RuntimeError):
    """Processes that train together lost each other, or do not do the same.

    >>> issubclass(TeamError, WisecrowdError)
    True
    """


@dataclass(frozen=True)
class Team:
    """Processes that train together, as one of them sees it.

    >>> Team(rank=1, size=3).place(8), Team(rank=2, size=3).place(2)
    (slice(2, 5, None), None)
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether it is this process that writes files."""
        return self.rank == 0

    def place(self, number: int) -> slice | None:
        """Which of so many rows are this process's; None where there are too few to give every process one."""
        if number < self.size:
            return None
        return slice(number * self.rank // self.size, number * (self.rank + 1) // self.size)

    # ------------------------------------------------------------------ telling each other

    def total(self, part: Tensor) -> Tensor:
        """The sum over all processes of what each of them has, with the same bits for all."""
        found = part.detach().clone(memory_format=need_torch().contiguous_format)
        with _heard():
            need_torch().distributed.all_reduce(found)
        return found

    def all_of(self, mine: Tensor) -> list[Tensor]:
        """What each process has, all of the same shape."""
        found = [need_torch().empty_like(mine) for _ in range(self.size)]
        with _heard():
            need_torch().distributed.all_gather(found, mine.contiguous())
        return found

    def word(self, values: NDArray[Any], place: device) -> NDArray[Any]:
        """What the first process says."""
        if self.size == 1:
            return values
        found = need_torch().from_numpy(np.array(values)).to(place)
        with _heard():
            need_torch().distributed.broadcast(found, src=0)
        told: NDArray[Any] = found.cpu().numpy()
        return told

    def wait(self) -> None:
        """Go on when all have come here."""
        if self.size > 1:
            self.total(need_torch().zeros(1, device=_home()))

    def same(self, what: str, *things: Any) -> None:
        """Refuse to go on when not all processes have the same; ``what`` says what differs, and what to do."""
        if self.size == 1:
            return
        mark = digest(things)
        marks = [int(each) for each in self.all_of(need_torch().tensor([mark], device=_home()))]
        if len(set(marks)) > 1:
            raise TeamError(f"the {self.size} processes that train together do not do the same: {what}")

    # ------------------------------------------------------------------ gradients

    def add_up(self, dense: Sequence[Tensor], sparse: Sequence[Tensor], loss: Tensor) -> Tensor:
        """Give every process the sum of all gradients, and the sum of the losses.

        Dense ones travel as one vector, at whose end it is counted who has a gradient: where nobody has, none is made,
        for an optimiser would let a weight decay that nothing has touched.
        """
        torch = need_torch()
        has = torch.tensor([float(each.grad is not None) for each in dense]).to(loss)
        parts = [torch.zeros_like(each) if each.grad is None else each.grad for each in dense]
        vector = self.total(torch.cat([*(part.flatten() for part in parts), has, loss.detach().reshape(1)]))
        *sums, count, whole = torch.split(vector, [*(each.numel() for each in dense), len(dense), 1])
        for each, grad, number in zip(dense, sums, count.tolist(), strict=True):
            each.grad = grad.view_as(each).to(each) if number else None
        self._add_up_rows(sparse)
        return whole[0]

    def _add_up_rows(self, tables: Sequence[Tensor]) -> None:
        """Sum sparse gradients by the rows that somebody touched, never as whole tables."""
        torch = need_torch()
        if not tables:
            return
        grads = [None if each.grad is None else each.grad.coalesce() for each in tables]
        mine = torch.tensor([-1 if grad is None else grad._nnz() for grad in grads], device=tables[0].device)
        counts = torch.stack(self.all_of(mine)).T.tolist()  # (tables, processes)
        for table, grad, touched in zip(tables, grads, counts, strict=True):
            most = max(touched)
            if most < 0:
                continue
            rows = torch.zeros(most, dtype=torch.int64, device=table.device)
            values = table.new_zeros(most, *table.shape[1:])
            if grad is not None:
                rows[: grad._nnz()], values[: grad._nnz()] = grad.indices()[0], grad.values()
            ends = [max(number, 0) for number in touched]
            whose = torch.cat([each[:end] for each, end in zip(self.all_of(rows), ends, strict=True)])
            what = torch.cat([each[:end] for each, end in zip(self.all_of(values), ends, strict=True)])
            table.grad = torch.sparse_coo_tensor(whose[None], what, table.shape, check_invariants=False).coalesce()


#: A process that nobody else trains with.
ALONE = Team()


def my_team() -> Team:
    """The processes that this one trains with; it joins them when it first asks.

    >>> my_team()
    Team(rank=0, size=1)
    """
    if os.environ.get(MEMBER, str(os.getpid())) != str(os.getpid()):
        return ALONE
    begun = sys.modules.get("torch.distributed")  # without it, nobody can have begun a group
    if begun is None or not (begun.is_available() and begun.is_initialized()):
        if (launched() or (0, 1))[1] == 1:
            return ALONE
        _join()
    distributed = need_torch().distributed
    return Team(distributed.get_rank(), distributed.get_world_size())


def _join() -> None:
    """Meet the others that the launcher started: over gloo, and where there are graphics cards over nccl between those."""
    torch = need_torch()
    if not torch.distributed.is_available():
        raise TeamError("this torch cannot train with other processes; start one alone, without torchrun")
    backend = "gloo"
    if torch.cuda.is_available() and torch.distributed.is_nccl_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    with _heard():
        torch.distributed.init_process_group(backend)
    os.environ[MEMBER] = str(os.getpid())
    atexit.register(_leave)


def _leave() -> None:
    distributed = need_torch().distributed
    if distributed.is_initialized():
        distributed.destroy_process_group()


def _home() -> Any:
    """Where tensors may lie that belong to no model: a group that others began may know graphics cards only."""
    torch = need_torch()
    kinds = torch.distributed.get_backend_config()
    return torch.device("cpu" if "cpu" in kinds else "cuda")


@contextlib.contextmanager
def _heard() -> Iterator[None]:
    """What torch says of a process that does not answer, as what it is."""
    try:
        yield
    except RuntimeError as error:
        raise TeamError(
            "another of the processes that train together is gone or does not answer "
            f"({str(error).splitlines()[0][:200]}); start all of them again: with checkpoint=FOLDER, training goes on where "
            "it was"
        ) from error


def digest(things: Iterable[Any]) -> int:
    """A number that is other when anything is other: tensors by their bits, all else by how it prints.

    >>> torch = need_torch()
    >>> digest([{"weight": torch.ones(2)}, "adam"]) == digest([{"weight": torch.ones(2)}, "adam"])
    True
    >>> digest([torch.tensor([1.0])]) == digest([torch.tensor([1.0000001])])
    False
    """
    found = hashlib.blake2b(digest_size=7)
    for thing in things:
        parts = thing if isinstance(thing, Mapping) else {"": thing}
        for name, part in parts.items():
            found.update(f"{name} {_mark(part)}".encode())
    return int.from_bytes(found.digest(), "big")


def _mark(part: Any) -> str:
    """Tensors by the sum of their bits, which is one pass where they are."""
    torch = need_torch()
    if isinstance(part, torch.Tensor):
        flat = part.detach().contiguous().flatten()
        whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}.get(flat.element_size(), torch.uint8)
        return f"{tuple(part.shape)} {int(flat.view(whole).sum(dtype=torch.int64))}"
    if isinstance(part, np.ndarray):
        return f"{part.shape} {zlib.crc32(np.ascontiguousarray(part).data)}"
    return repr(part)
