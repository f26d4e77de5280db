"""Division of a batch among the processes of a group, such that a step equals that of a single process.

There are two ways. Where the loss of a batch is the weighted mean of the losses of its rows, each process computes
some of the rows, and its gradient counts by their weight. Where rows depend on each other (mixup, sorting,
comparisons), every process computes the loss of the whole batch and only the network is divided: each process
computes some rows of its output and sends them to the others.

In both cases a layer sees only some of the rows. Batch norms therefore sum their moments over all processes, and
dropout draws a mask for the whole batch, from which it takes the rows at hand.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.process_group import ProcessGroup

if TYPE_CHECKING:
    from torch import Tensor, nn


class BatchPart(NamedTuple):
    """Rows of a batch that pass through the layers of this process.

    Attributes
    ----------
    group : ProcessGroup
        Processes that divide the batch.
    rows : slice
        Rows of this process within the batch.
    n_batch_rows : int
        Number of rows of the batch over all processes.

    Examples
    --------
    >>> BatchPart(ProcessGroup(1, 2), slice(3, 6), 6).count_repeats(12)
    4
    """

    group: ProcessGroup
    rows: slice
    n_batch_rows: int

    def count_repeats(self, n_layer_rows: int) -> int:
        """Return the number of rows of a layer per row of the batch, such as the words of a text.

        Parameters
        ----------
        n_layer_rows : int
            Number of rows that a layer received.

        Returns
        -------
        int

        Raises
        ------
        UsageError
            If the rows cannot be divided evenly among those of the batch.
        """
        n_rows = self.rows.stop - self.rows.start
        repeats, remainder = divmod(n_layer_rows, n_rows)
        if remainder:
            raise UsageError(
                f"a layer of the network received {n_layer_rows} rows for {n_rows} tasks, so that several processes cannot divide "
                "the batch; train this network in one process"
            )
        return repeats

    def own_layer_rows(self, n_layer_rows: int) -> slice:
        """Return the position of this process's rows among the rows of all processes.

        Parameters
        ----------
        n_layer_rows : int
            Number of rows that a layer of this process received.

        Returns
        -------
        slice
        """
        repeats = self.count_repeats(n_layer_rows)
        return slice(repeats * self.rows.start, repeats * self.rows.stop)


#: Part of a batch that the layers of this process see; None if they see all of it.
_batch_part: ContextVar[BatchPart | None] = ContextVar("wisecrowd_batch_part", default=None)
#: Group that divides the network, but not the loss; None if there is none.
_network_group: ContextVar[ProcessGroup | None] = ContextVar("wisecrowd_network_group", default=None)


@contextlib.contextmanager
def _set_variable(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Set a context variable inside a block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


# ---------------------------------------------------------------------- a step


def compute_gradients(
    group: ProcessGroup,
    loss: Callable[[Tensor], Tensor],
    rows: Tensor,
    row_weights: Callable[[Tensor], Tensor] | None,
    dense: Sequence[Tensor],
    sparse: Sequence[Tensor],
    *,
    separable: bool,
) -> Tensor:
    """Compute the loss of some rows and its gradients with respect to the parameters.

    Parameters
    ----------
    group : ProcessGroup
        Processes among which the work is divided.
    loss : callable
        Function from row numbers to their mean loss.
    rows : Tensor
        Row numbers of the batch.
    row_weights : callable or None
        Function from row numbers to their weights in the mean; None if all are equal.
    dense, sparse : sequence of Tensor
        Parameters with dense and with sparse gradients.
    separable : bool
        Whether the loss is the weighted mean of the losses of single rows, except for terms that depend on no row.

    Returns
    -------
    Tensor
        Loss of all rows.

    Examples
    --------
    >>> weight = import_torch().tensor([3.0], requires_grad=True)
    >>> loss = compute_gradients(
    ...     ProcessGroup(), lambda rows: (weight**2).sum(), import_torch().arange(2), None, [weight], [], separable=True
    ... )
    >>> float(loss), weight.grad.tolist()
    (9.0, [6.0])
    """
    if group.size == 1:
        value = loss(rows)
        value.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
        return value.detach()
    own_rows = group.own_rows(len(rows))
    if separable and own_rows is not None:
        torch = import_torch()
        weight = torch.ones(len(rows), dtype=torch.float64) if row_weights is None else row_weights(rows)
        share = float(weight[own_rows].sum() / weight.sum().clamp_min(1e-300))
        part = BatchPart(group, own_rows, len(rows))
        computed_rows, division = rows[own_rows], _set_variable(_batch_part, part)
    else:
        share, computed_rows, division = 1 / group.size, rows, _set_variable(_network_group, group)
    with division:
        value = share * loss(computed_rows)
        value.backward()  # type: ignore[no-untyped-call]
    return group.sum_gradients([parameter for parameter in dense if parameter.requires_grad], sparse, value.detach())


def apply_network(trunk: Any, inputs: Tensor) -> Any:
    """Apply a network to a batch; the processes of a group compute some rows each.

    Parameters
    ----------
    trunk : torch.nn.Module
        Network.
    inputs : Tensor
        Rows of the whole batch.

    Returns
    -------
    Tensor
        Output for the whole batch.

    Examples
    --------
    >>> apply_network(import_torch().nn.Identity(), import_torch().ones(2, 1)).tolist()
    [[1.0], [1.0]]
    """
    group = _network_group.get()
    own_rows = None if group is None else group.own_rows(len(inputs))
    if group is None or own_rows is None or not any(True for _ in trunk.parameters()):
        return trunk(inputs)
    with _set_variable(_batch_part, BatchPart(group, own_rows, len(inputs))):
        output = trunk(inputs[own_rows])
    return _make_sum_function().apply(_pad_rows(output, own_rows, len(inputs)), group)


def _pad_rows(part: Tensor, rows: slice, n_rows: int) -> Tensor:
    """Return ``n_rows`` rows that are zero except for a part."""
    padding = [0, 0] * (part.ndim - 1) + [rows.start, n_rows - rows.stop]
    padded: Tensor = import_torch().nn.functional.pad(part, padding)
    return padded


@cache
def _make_sum_function() -> Any:
    """Return the sum over all processes as a differentiable function; its gradient is the sum of their gradients."""

    class SumOverProcesses(import_torch().autograd.Function):  # type: ignore[misc]  # torch is imported late
        @staticmethod
        def forward(context: Any, part: Tensor, group: ProcessGroup) -> Tensor:
            context.group = group
            return group.sum(part)

        @staticmethod
        def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
            return context.group.sum(gradient), None

    return SumOverProcesses


# ---------------------------------------------------------------------- layers


@contextlib.contextmanager
def synchronize_layers(model: nn.Module, group: ProcessGroup) -> Iterator[None]:
    """Make dropout and batch norms act on the whole batch inside a block, although they see a part of it.

    Parameters
    ----------
    model : torch.nn.Module
        Model whose layers are changed inside the block.
    group : ProcessGroup
        Processes that divide the batch.

    Yields
    ------
    None

    Examples
    --------
    >>> layer = import_torch().nn.Dropout(0.5).eval()
    >>> with synchronize_layers(layer, ProcessGroup()):
    ...     layer(import_torch().ones(2)).tolist()
    [1.0, 1.0]
    """
    if group.size == 1:
        yield
        return
    layers = import_torch().nn.modules
    forwards = {layers.dropout._DropoutNd: _apply_dropout, layers.batchnorm._BatchNorm: _apply_batch_norm}
    changed: list[Any] = []
    try:
        for layer in model.modules():
            for kind, forward in forwards.items():
                if isinstance(layer, kind) and not isinstance(layer, layers.batchnorm.SyncBatchNorm):
                    layer.forward = partial(forward, layer)
                    changed.append(layer)
        yield
    finally:
        for layer in changed:
            del layer.forward


def _apply_dropout(layer: Any, rows: Tensor) -> Any:
    """Apply dropout to a part of a batch with a mask for the whole batch, which is the same in all processes."""
    part = _batch_part.get()
    if part is None or not layer.training:
        return type(layer).forward(layer, rows)
    own_rows = part.own_layer_rows(len(rows))
    n_rows = part.count_repeats(len(rows)) * part.n_batch_rows
    return type(layer).forward(layer, _pad_rows(rows, own_rows, n_rows))[own_rows]


def _apply_batch_norm(layer: Any, rows: Tensor) -> Any:
    """Normalise a part of a batch by the moments of the whole batch."""
    part = _batch_part.get()
    if part is None or not (layer.training or layer.running_mean is None):
        return type(layer).forward(layer, rows)
    layer._check_input_dim(rows)
    other_axes = [0, *range(2, rows.ndim)]
    count = part.count_repeats(len(rows)) * part.n_batch_rows * rows[:1, :1].numel()
    with import_torch().no_grad():
        mean = part.group.sum(rows.sum(dim=other_axes)) / count
        variance = part.group.sum((rows - _expand_channels(mean, rows)).square().sum(dim=other_axes)) / count
        if layer.training and layer.track_running_stats:
            layer.num_batches_tracked.add_(1)
            momentum = 1 / float(layer.num_batches_tracked) if layer.momentum is None else layer.momentum
            layer.running_mean.lerp_(mean, momentum)
            layer.running_var.lerp_(variance * (count / max(count - 1, 1)), momentum)
    function = _make_batch_norm_function()
    return function.apply(rows, layer.weight, layer.bias, mean, variance, layer.eps, count, part.group)


def _expand_channels(values: Tensor, rows: Tensor) -> Tensor:
    """Return one value per channel in a shape that broadcasts over rows."""
    return values.view(1, -1, *[1] * (rows.ndim - 2))


@cache
def _make_batch_norm_function() -> Any:
    """Return an autograd function: batch norm with mean and variance over the rows of all processes.

    With x̂ = (x − mean) s, s = 1 / √(variance + eps) and y = w x̂ + b, a batch of n rows has

        ∂L/∂x = w s (∂L/∂y − Σ ∂L/∂y / n − x̂ Σ x̂ ∂L/∂y / n)

    in which the sums run over all processes. The gradients of w and b are those of the rows of this process, like the
    gradients of all other parameters; `ProcessGroup.sum_gradients` adds them up. ``torch.nn.SyncBatchNorm`` does the same,
    but not on CPUs.
    """
    torch = import_torch()

    class BatchNormOverProcesses(import_torch().autograd.Function):  # type: ignore[misc]  # torch is imported late
        @staticmethod
        def forward(
            context: Any, rows: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, variance: Tensor,
            eps: float, count: int, group: ProcessGroup,
        ) -> Any:  # fmt: skip
            context.save_for_backward(rows, weight, mean, variance)
            context.eps, context.count, context.group = eps, count, group
            return torch.nn.functional.batch_norm(rows, mean, variance, weight, bias, eps=eps)

        @staticmethod
        def backward(context: Any, gradient: Tensor) -> tuple[Any, ...]:
            rows, weight, mean, variance = context.saved_tensors
            s = torch.rsqrt(variance + context.eps)
            w = torch.ones_like(mean) if weight is None else weight
            # With a fixed mean and variance, torch returns w s ∂L/∂y, and Σ x̂ ∂L/∂y and Σ ∂L/∂y over these rows.
            rows_gradient, weight_gradient, bias_gradient = torch.ops.aten.native_batch_norm_backward(
                gradient, rows, w, mean, variance, mean, s, False, context.eps, [True, True, True]
            )
            sums = context.group.sum(torch.stack([weight_gradient, bias_gradient]))
            mean_xhat_gradient, mean_gradient = sums / context.count
            # w s (mean_gradient + x̂ mean_xhat_gradient) as intercept + slope x, which needs no array of x̂.
            slope = w * s * s * mean_xhat_gradient
            intercept = w * s * mean_gradient - slope * mean
            rows_gradient = rows_gradient - _expand_channels(intercept, rows) - rows * _expand_channels(slope, rows)
            parameter_gradients = (None, None) if weight is None else (weight_gradient, bias_gradient)
            return rows_gradient, *parameter_gradients, None, None, None, None, None

    return BatchNormOverProcesses
