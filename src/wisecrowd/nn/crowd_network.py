"""A network that classifies tasks, with what a method knows of workers beside it."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.classifiers.soft import Standardiser
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import need_torch, threads
from wisecrowd.nn.checkpoint import Arrays
from wisecrowd.nn.distributed import through
from wisecrowd.nn.modules import BLOCK, build, prepared, tried_on
from wisecrowd.nn.trainer import Group, part_of, weights_and_biases
from wisecrowd.nn.vote_tensors import PerWorker

if TYPE_CHECKING:
    from torch import Tensor, nn


class Sizes(NamedTuple):
    """What the parameters of a method depend on.

    >>> Sizes(n_workers=59, n_classes=8, n_hidden=128).n_classes
    8
    """

    n_workers: int
    n_classes: int
    n_hidden: int
    """Units that the last layer of the network is given."""


class CrowdNetwork:
    """Trunk, head, and a method's own parameters, with the standardiser of the inputs.

    ``module`` is what a `Trainer` trains. Per-worker tables lie flat in it, (workers, numbers).
    """

    def __init__(
        self, choice: Any, shape: tuple[int, ...], n_classes: int, hidden: int, dropout: float, *, has_head: bool = True
    ) -> None:
        """A network without workers; layers draw their weights from torch's global stream.

        Without a head, the network gives hidden units of which the method makes classes itself.
        """
        torch = need_torch()
        self.choice, self.shape, self.n_classes, self.has_head = choice, shape, n_classes, has_head
        self.standardiser = Standardiser()
        whole = build(choice, shape, n_classes, hidden, dropout)
        self.module: nn.Module = torch.nn.Module()
        self.module.trunk, self.module.head = _halves(whole, shape) if has_head else (whole, torch.nn.Identity())
        self.module.own = torch.nn.Module()
        self.tables: dict[str, tuple[int, ...]] = {}
        self.sparse: list[str] = []
        self._try_out()

    @property
    def own(self) -> Any:
        """The method's own parameters and layers."""
        return self.module.own

    @property
    def trunk(self) -> Any:
        """All layers but the last."""
        return self.module.trunk

    @property
    def head(self) -> Any:
        """The last layer, which is linear."""
        return self.module.head

    @property
    def n_hidden(self) -> int:
        """Units that the head is given."""
        return self._n_hidden

    def add(self, parts: Mapping[str, Any]) -> Self:
        """Take in a method's parameters (tensors), layers (modules) and `PerWorker` tables by name."""
        nn = need_torch().nn
        for name, part in parts.items():
            if isinstance(part, nn.Module):
                self.own.add_module(name, part)
                continue
            if isinstance(part, PerWorker):
                self.tables[name] = tuple(part.start.shape[1:])
                if part.sparse:
                    self.sparse.append(name)
                part = part.start.reshape(len(part.start), -1)
            self.own.register_parameter(name, nn.Parameter(part.clone()))
        return self

    def groups(self, learning_rate: float | None, decay: float, own_decay: float = 0.0) -> list[Group]:
        """For a `Trainer`: weights that decay, what does not, and tables of which only touched rows are updated.

        ``learning_rate`` and ``own_decay`` are of the method's own parameters; tables with touched rows never decay.
        """
        network = need_torch().nn.ModuleList([self.trunk, self.head])
        found = weights_and_biases(network, weight_decay=decay)
        tables = [getattr(self.own, name) for name in self.sparse]
        rest = [each for each in self.own.parameters() if all(each is not table for table in tables)]
        if rest:
            found.append(Group(parameters=rest, learning_rate=learning_rate, weight_decay=own_decay))
        if tables:
            found.append(Group(parameters=tables, optimiser="lazyadam", learning_rate=learning_rate, weight_decay=0.0))
        return found

    # ------------------------------------------------------------------ computing

    def rows(self, X: NDArray[Any], learn: bool = False) -> NDArray[Any]:
        """Features as the network takes them, standardised by what was seen first."""
        return prepared(X, self.choice, self.standardiser, learn)

    def tensor(self, rows: NDArray[Any]) -> Tensor:
        """Numbers where the network computes, in its precision."""
        found: Tensor = need_torch().from_numpy(np.ascontiguousarray(rows)).to(next(self.module.parameters()))
        return found

    def __call__(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """What the last layer is given, and what it gives."""
        hidden = self.hidden(inputs)
        return hidden, self.head(hidden)

    def hidden(self, inputs: Tensor) -> Tensor:
        """What the last layer is given."""
        found: Tensor = through(self.trunk, inputs)
        return found

    def table(self, name: str) -> Tensor:
        """A per-worker table in its shape, (workers, ...)."""
        flat: Tensor = getattr(self.own, name)
        return flat.view(len(flat), *self.tables[name])

    def rows_of(self, name: str, worker: Tensor) -> Tensor:
        """The rows of a per-worker table for some workers, who may recur."""
        flat = getattr(self.own, name)
        embedding = need_torch().nn.functional.embedding  # whose gradient is sparse, unlike that of indexing
        found = embedding(worker, flat, sparse=True) if name in self.sparse else flat[worker]
        return found.view(len(worker), *self.tables[name])

    def blocks(self, X: NDArray[Any], size: int = BLOCK) -> Any:
        """Inputs, hidden units and logits of rows of features, block by block, with dropout switched off."""
        self.module.eval()
        with need_torch().no_grad(), threads(1 if self.is_small else None):
            for start in range(0, len(X), size):
                inputs = self.tensor(self.rows(X[start : start + size]))
                yield (inputs, *self(inputs))

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """A block in which dropout is off and norms of batches do not learn."""
        was = self.trunk.training
        self.trunk.eval()
        try:
            yield
        finally:
            self.trunk.train(was)

    @property
    def is_small(self) -> bool:
        """Whether several threads would only wait for each other."""
        return (isinstance(self.choice, str) and self.choice != "cnn") or getattr(self.choice, "is_small", False)

    def _try_out(self) -> None:
        """Refuse a network that does not fit the rows before it trains on them."""
        torch = need_torch()
        self.module.eval()
        with tried_on(self.shape), torch.no_grad():
            hidden, logits = self(torch.zeros(2, *self.shape))
        self._n_hidden = int(hidden.shape[-1])
        if hidden.ndim != 2 or (self.has_head and tuple(logits.shape) != (2, self.n_classes)):
            raise UsageError(
                f"the network must give one logit per class, here (2, {self.n_classes}) for two rows, by a last layer "
                f"that is linear; it gave an array of shape {tuple(logits.shape)}"
            )

    # ------------------------------------------------------------------ keeping

    def arrays(self) -> Arrays:
        """Enough to predict."""
        found = {f"model.{name}": each.cpu().numpy().copy() for name, each in self.module.state_dict().items()}
        if self.standardiser.mean is not None and self.standardiser.scale is not None:
            found |= {"mean": self.standardiser.mean, "scale": self.standardiser.scale}
        return found

    def restore(self, arrays: Arrays) -> Self:
        """Take back what `arrays` gave."""
        torch = need_torch()
        if "mean" in arrays:
            self.standardiser = Standardiser(arrays["mean"], arrays["scale"])
        weights = {name: torch.from_numpy(np.array(each)) for name, each in part_of(arrays, "model").items()}
        self.module.to(next(iter(weights.values())).dtype)
        self.module.load_state_dict(weights)
        self.module.eval()
        return self

    def take(self, weights: dict[str, Tensor]) -> None:
        """Go to other weights."""
        self.module.load_state_dict(weights)


def _halves(whole: nn.Module, shape: tuple[int, ...]) -> tuple[nn.Module, nn.Module]:
    """The network without the linear layer that it ends in, and that layer, which is found by trying."""
    torch = need_torch()
    if isinstance(whole, torch.nn.Linear):
        return torch.nn.Identity(), whole
    gave: dict[str, Tensor] = {}
    hooks = [
        part.register_forward_hook(lambda _part, _inputs, output, name=name: gave.__setitem__(name, output))
        for name, part in whole.named_modules()
        if isinstance(part, torch.nn.Linear)
    ]
    whole.eval()
    try:
        with tried_on(shape), torch.no_grad():
            found = whole(torch.zeros(2, *shape))
    finally:
        for hook in hooks:
            hook.remove()
    last = [name for name, output in gave.items() if output is found]
    if not last:
        raise UsageError(
            "the network must end in a linear layer, torch.nn.Linear, whose output is the logits; what this one gives comes "
            "from something else (a softmax at the end is not wanted: it is applied afterwards)"
        )
    trunk = copy.deepcopy(whole)
    parent, _, name = last[0].rpartition(".")
    holder = trunk.get_submodule(parent)
    head = getattr(holder, name)
    setattr(holder, name, torch.nn.Identity())
    return trunk, head
