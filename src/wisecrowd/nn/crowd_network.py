"""Networks that classify tasks, with the worker parameters of a method beside them."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.checkpoints import Arrays
from wisecrowd.classifiers.standardiser import Standardiser
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch, limit_threads
from wisecrowd.nn.distributed import apply_network
from wisecrowd.nn.modules import (
    PREDICTION_BATCH_SIZE,
    build_module,
    check_weights,
    explain_shape_errors,
    prepare_inputs,
    without_memory,
)
from wisecrowd.nn.seeding import fork_random_state, select_device
from wisecrowd.nn.trainer import ParameterGroup, select_prefix, split_by_decay
from wisecrowd.nn.vote_tensors import WorkerTable

if TYPE_CHECKING:
    from torch import Tensor, nn


class ModelSizes(NamedTuple):
    """Sizes that the shapes of worker parameters depend on.

    Attributes
    ----------
    n_workers, n_classes : int
        Numbers of workers and classes.
    n_hidden : int
        Number of inputs of the last layer.
    input_shape : tuple of int
        Shape of the prepared features of one task.

    Examples
    --------
    >>> ModelSizes(n_workers=59, n_classes=8, n_hidden=128).n_classes
    8
    """

    n_workers: int
    n_classes: int
    n_hidden: int
    input_shape: tuple[int, ...] = ()


class CrowdNetwork:
    """Network in two parts, trunk and head, with worker parameters and the standardiser of the features.

    Layers draw their initial weights from the global random stream of torch (see `fork_random_state`).

    Parameters
    ----------
    classifier : str, torch.nn.Module or callable
        Classifier as in `build_module`.
    shape : tuple of int
        Shape of the prepared features of one task.
    n_classes, hidden, dropout : int, int, float
        Number of classes, width of the hidden layer, and dropout share.
    has_head : bool, default True
        Whether the last linear layer gives class logits. Without a head, the method computes labels from the hidden
        units.

    Attributes
    ----------
    module : torch.nn.Module
        Module that a `Trainer` trains. Worker tables are stored flat, as (n_workers, n_numbers).
    n_hidden : int
        Number of inputs of the head.

    Examples
    --------
    >>> network = CrowdNetwork("mlp", (3,), n_classes=2, hidden=4, dropout=0.0)
    >>> hidden, logits = network(import_torch().zeros(5, 3))
    >>> tuple(hidden.shape), tuple(logits.shape)
    ((5, 4), (5, 2))
    """

    def __init__(
        self,
        classifier: Any,
        shape: tuple[int, ...],
        n_classes: int,
        hidden: int,
        dropout: float,
        *,
        has_head: bool = True,
    ) -> None:
        torch = import_torch()
        self.classifier, self.shape, self.n_classes, self.has_head = classifier, shape, n_classes, has_head
        self.standardiser = Standardiser()
        module = build_module(classifier, shape, n_classes, hidden, dropout)
        self.module: nn.Module = torch.nn.Module()
        trunk, head = _split_last_layer(module, shape) if has_head else (module, torch.nn.Identity())
        self.module.trunk, self.module.head = trunk, head
        self.module.worker_parameters = torch.nn.Module()
        self.table_shapes: dict[str, tuple[int, ...]] = {}
        self.sparse_tables: list[str] = []
        self.n_hidden = self._check_shapes()

    @property
    def worker_parameters(self) -> Any:
        """Parameters and layers that a method adds to the network."""
        return self.module.worker_parameters

    @property
    def trunk(self) -> Any:
        """All layers but the last."""
        return self.module.trunk

    @property
    def head(self) -> Any:
        """Last layer, which is linear."""
        return self.module.head

    def add_worker_parameters(self, parameters: Mapping[str, Any]) -> Self:
        """Add the parameters of a method.

        Parameters
        ----------
        parameters : mapping
            Tensors, layers and `WorkerTable` objects by name.

        Returns
        -------
        CrowdNetwork
            The network itself.
        """
        nn = import_torch().nn
        for name, parameter in parameters.items():
            if isinstance(parameter, nn.Module):
                self.worker_parameters.add_module(name, parameter)
                continue
            initial = parameter
            if isinstance(parameter, WorkerTable):
                self.table_shapes[name] = tuple(parameter.initial.shape[1:])
                if parameter.sparse:
                    self.sparse_tables.append(name)
                initial = parameter.initial.reshape(len(parameter.initial), -1)
            self.worker_parameters.register_parameter(name, nn.Parameter(initial.clone()))
        return self

    def make_parameter_groups(
        self, worker_learning_rate: float | None, decay: float, worker_decay: float = 0.0
    ) -> list[ParameterGroup]:
        """Return the parameters in groups for a `Trainer`.

        Parameters
        ----------
        worker_learning_rate : float or None
            Learning rate of the worker parameters; None for that of the network.
        decay : float
            Weight decay of the network.
        worker_decay : float, default 0
            Weight decay of the worker parameters, except for sparse tables, which never decay.

        Returns
        -------
        list of ParameterGroup
            Weights with decay, other weights, dense worker parameters, and sparse tables.
        """
        network = import_torch().nn.ModuleList([self.trunk, self.head])
        groups = split_by_decay(network, weight_decay=decay)
        tables = [getattr(self.worker_parameters, name) for name in self.sparse_tables]
        dense = [
            parameter
            for parameter in self.worker_parameters.parameters()
            if all(parameter is not table for table in tables)
        ]
        rate = worker_learning_rate
        if dense:
            groups.append(ParameterGroup(parameters=dense, learning_rate=rate, weight_decay=worker_decay))
        if tables:
            groups.append(ParameterGroup(parameters=tables, optimiser="lazyadam", learning_rate=rate, weight_decay=0.0))
        return groups

    # ------------------------------------------------------------------ computing

    def prepare_inputs(self, X: NDArray[Any], *, fit: bool = False) -> NDArray[Any]:
        """Return features in the layout of the network, standardised.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features.
        fit : bool, default False
            Whether to fit the standardiser to these features.

        Returns
        -------
        ndarray
        """
        rows: NDArray[Any] = prepare_inputs(X, self.classifier, self.standardiser, fit=fit)
        return rows

    def to_tensor(self, rows: NDArray[Any]) -> Tensor:
        """Return an array as a tensor with the device and precision of the network.

        Parameters
        ----------
        rows : ndarray
            Numbers.

        Returns
        -------
        Tensor
        """
        tensor: Tensor = import_torch().from_numpy(np.ascontiguousarray(rows)).to(next(self.module.parameters()))
        return tensor

    def __call__(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the hidden units and the logits of prepared features."""
        hidden = self.compute_hidden(inputs)
        return hidden, self.head(hidden)

    def compute_hidden(self, inputs: Tensor) -> Tensor:
        """Return the inputs of the last layer.

        Parameters
        ----------
        inputs : Tensor of shape (n_tasks, ...)
            Prepared features.

        Returns
        -------
        Tensor of shape (n_tasks, n_hidden)
        """
        hidden: Tensor = apply_network(self.trunk, inputs)
        return hidden

    def worker_table(self, name: str) -> Tensor:
        """Return a worker table.

        Parameters
        ----------
        name : str
            Name of the table.

        Returns
        -------
        Tensor of shape (n_workers, ...)
        """
        flat: Tensor = getattr(self.worker_parameters, name)
        return flat.view(len(flat), *self.table_shapes[name])

    def worker_rows(self, name: str, workers: Tensor) -> Tensor:
        """Return rows of a worker table.

        Parameters
        ----------
        name : str
            Name of the table.
        workers : Tensor of int
            Worker codes, possibly repeated.

        Returns
        -------
        Tensor of shape (n_selected_workers, ...)
        """
        flat = getattr(self.worker_parameters, name)
        embedding = import_torch().nn.functional.embedding  # its gradient is sparse, unlike that of indexing
        rows = embedding(workers, flat, sparse=True) if name in self.sparse_tables else flat[workers]
        return rows.view(len(workers), *self.table_shapes[name])

    def iterate_batches(
        self, X: NDArray[Any], size: int = PREDICTION_BATCH_SIZE
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield inputs, hidden units and logits of features, batch by batch, without dropout and gradients.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features.
        size : int, default 4096
            Tasks per batch.

        Yields
        ------
        inputs, hidden, logits : Tensor
        """
        self.module.eval()
        with import_torch().no_grad(), limit_threads(1 if self.is_small else None):
            for start in range(0, len(X), size):
                inputs = self.to_tensor(self.prepare_inputs(X[start : start + size]))
                yield (inputs, *self(inputs))

    @contextlib.contextmanager
    def eval_mode(self) -> Iterator[None]:
        """Switch off dropout and the updates of batch norms inside a block.

        Yields
        ------
        None
        """
        was_training = self.trunk.training
        self.trunk.eval()
        try:
            yield
        finally:
            self.trunk.train(was_training)

    @property
    def is_small(self) -> bool:
        """True if one thread is faster than several."""
        is_dense = isinstance(self.classifier, str) and self.classifier != "cnn"
        return is_dense or getattr(self.classifier, "is_small", False)

    def _check_shapes(self) -> int:
        """Raise if the network does not fit the features or the classes; return the number of hidden units."""
        torch = import_torch()
        self.module.eval()
        with explain_shape_errors(self.shape), torch.no_grad():
            hidden, logits = self(torch.zeros(2, *self.shape))
        if hidden.ndim != 2 or (self.has_head and tuple(logits.shape) != (2, self.n_classes)):
            raise UsageError(
                f"the network must end in a linear layer with one logit per class, shape (2, {self.n_classes}) for two rows; "
                f"got shape {tuple(logits.shape)}"
            )
        return int(hidden.shape[-1])

    # ------------------------------------------------------------------ state

    def arrays(self) -> Arrays:
        """Return everything that prediction needs.

        Returns
        -------
        dict of ndarray
        """
        state = {f"model.{name}": weight.cpu().numpy().copy() for name, weight in self.module.state_dict().items()}
        if self.standardiser.mean is not None and self.standardiser.scale is not None:
            state |= {"mean": self.standardiser.mean, "scale": self.standardiser.scale}
        return state

    def restore(self, arrays: Arrays) -> Self:
        """Restore a state.

        Parameters
        ----------
        arrays : dict of ndarray
            Result of `arrays`.

        Returns
        -------
        CrowdNetwork
            The network itself.
        """
        torch = import_torch()
        if "mean" in arrays:
            self.standardiser = Standardiser(arrays["mean"], arrays["scale"])
        weights = {name: torch.from_numpy(np.array(array)) for name, array in select_prefix(arrays, "model").items()}
        self.module.to(next(iter(weights.values())).dtype)
        self.module.load_state_dict(weights)
        self.module.eval()
        return self


def _split_last_layer(module: nn.Module, shape: tuple[int, ...]) -> tuple[nn.Module, nn.Module]:
    """Return the module without its last linear layer, and that layer, which is found by a forward pass."""
    torch = import_torch()
    if isinstance(module, torch.nn.Linear):
        return torch.nn.Identity(), module
    outputs: dict[str, Tensor] = {}
    hooks = [
        part.register_forward_hook(lambda _part, _inputs, output, name=name: outputs.__setitem__(name, output))
        for name, part in module.named_modules()
        if isinstance(part, torch.nn.Linear)
    ]
    module.eval()
    try:
        with explain_shape_errors(shape), torch.no_grad():
            logits = module(torch.zeros(2, *shape))
    finally:
        for hook in hooks:
            hook.remove()
    last = [name for name, output in outputs.items() if output is logits]
    if not last:
        raise UsageError(
            "the network must end in a linear layer, torch.nn.Linear, that gives the logits; remove the layers after it "
            "(a softmax is applied afterwards)"
        )
    trunk = copy.deepcopy(module)
    parent_name, _, name = last[0].rpartition(".")
    parent = trunk.get_submodule(parent_name)
    head = getattr(parent, name)
    setattr(parent, name, torch.nn.Identity())
    return trunk, head


def _keep_parameters(network: CrowdNetwork, crowd: Crowd) -> None:
    """Leave the worker parameters as they were built."""


@dataclass(frozen=True, kw_only=True)
class NetworkBuilder:
    """Recipe for a `CrowdNetwork`: the classifier, the sizes of the data, and the worker parameters of a method.

    Attributes
    ----------
    classifier : str, torch.nn.Module or callable
        Classifier as in `build_module`.
    input_shape : tuple of int
        Shape of the prepared features of one task.
    n_workers, n_classes : int
        Numbers of workers and classes.
    hidden : int
        Width of the hidden layer.
    dropout : float
        Dropout share.
    make_worker_parameters : callable
        Function from `ModelSizes` to tensors, layers and `WorkerTable` objects by name.
    initialize : callable
        Function of (network, votes) that sets the worker parameters from the training votes, in place.
    has_head : bool
        Whether the last layer of the classifier gives class logits.

    Examples
    --------
    >>> builder = NetworkBuilder(
    ...     classifier="mlp", input_shape=(3,), n_workers=5, n_classes=2, hidden=4, dropout=0.0,
    ...     make_worker_parameters=lambda sizes: {"bias": WorkerTable(import_torch().zeros(sizes.n_workers, 2))},
    ... )
    >>> tuple(builder.build(random_state=0).worker_table("bias").shape)
    (5, 2)
    """

    classifier: Any
    input_shape: tuple[int, ...]
    n_workers: int
    n_classes: int
    hidden: int
    dropout: float
    make_worker_parameters: Callable[[ModelSizes], dict[str, Any]]
    initialize: Callable[[CrowdNetwork, Crowd], None] = _keep_parameters
    has_head: bool = True

    def build(self, random_state: int) -> CrowdNetwork:
        """Return an untrained network.

        Parameters
        ----------
        random_state : int
            Seed of the weights.

        Returns
        -------
        CrowdNetwork
        """
        with fork_random_state(select_device("cpu"), random_state):
            return self._build()

    def restore(self, arrays: Arrays) -> CrowdNetwork:
        """Return a network with saved weights.

        Parameters
        ----------
        arrays : dict of ndarray
            Result of `CrowdNetwork.arrays`.

        Returns
        -------
        CrowdNetwork

        Raises
        ------
        ValueError
            If the arrays are not those of such a network.
        """
        with fork_random_state(select_device("cpu"), 0), without_memory():
            check_weights(self._build().module, select_prefix(arrays, "model"))
        return self.build(random_state=0).restore(arrays)

    def _build(self) -> CrowdNetwork:
        """Return an untrained network with weights from the current random stream."""
        network = CrowdNetwork(
            self.classifier, self.input_shape, self.n_classes, self.hidden, self.dropout, has_head=self.has_head
        )
        sizes = ModelSizes(self.n_workers, self.n_classes, network.n_hidden, self.input_shape)
        return network.add_worker_parameters(self.make_worker_parameters(sizes))
