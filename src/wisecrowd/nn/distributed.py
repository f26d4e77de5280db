"""The work of a batch, divided among the processes that train together (see `_ranks`), so that the step is that of one.

There are two ways. Where the loss of a batch is the mean, by weight, of what its rows lose, each process takes some of
the rows, and its gradient counts by their weight. Where rows depend on each other (a batch is mixed, sorted, compared),
every process computes the loss of the whole batch, and only the network in it is divided: each lets some of the rows
through, and gives the others what came of them.

Either way a layer sees some of the rows only. Norms of batches therefore add up their moments over all processes, and
dropout draws for the whole batch, of which it takes what belongs to the rows at hand.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.process_group import Team

if TYPE_CHECKING:
    from torch import Tensor, nn


class Part(NamedTuple):
    """The rows of a batch that this process lets through its layers.

    >>> Part(Team(1, 2), slice(3, 6), 6).times(12)
    4
    """

    team: Team
    place: slice
    whole: int
    """Rows of the batch."""

    def times(self, number: int) -> int:
        """How many rows a layer has for each of the batch, say when words of a text are rows to it."""
        times, left = divmod(number, self.place.stop - self.place.start)
        if left:
            raise UsageError(
                f"a layer of the network was given {number} rows for {self.place.stop - self.place.start} tasks, so that "
                "processes which train together cannot tell which belong to which; train it in one process"
            )
        return times

    def own(self, number: int) -> slice:
        """Where so many rows of this process are among those of all."""
        times = self.times(number)
        return slice(times * self.place.start, times * self.place.stop)


#: The part of a batch that layers see now, and who divides what a network is given; None where nothing is divided.
_part: ContextVar[Part | None] = ContextVar("wisecrowd_part", default=None)
_dividing: ContextVar[Team | None] = ContextVar("wisecrowd_dividing", default=None)


@contextlib.contextmanager
def _set(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


# ---------------------------------------------------------------------- a step


def gradients(
    team: Team,
    loss: Callable[[Tensor], Tensor],
    rows: Tensor,
    weigh: Callable[[Tensor], Tensor] | None,
    dense: Sequence[Tensor],
    sparse: Sequence[Tensor],
    *,
    separable: bool,
) -> Tensor:
    """The loss of some rows; its gradients are left in the parameters.

    ``weigh`` says how much each row counts in the mean; None if all count alike. ``separable`` says that the loss is
    that mean, but for terms which depend on no row.
    """
    if team.size == 1:
        value = loss(rows)
        value.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
        return value.detach()
    place = team.place(len(rows))
    if separable and place is not None:
        weight = need_torch().ones(len(rows), dtype=need_torch().float64) if weigh is None else weigh(rows)
        share = float(weight[place].sum() / weight.sum().clamp_min(1e-300))
        mine, division = rows[place], _set(_part, Part(team, place, len(rows)))
    else:
        share, mine, division = 1 / team.size, rows, _set(_dividing, team)
    with division:
        value = share * loss(mine)
        value.backward()  # type: ignore[no-untyped-call]
    return team.add_up([each for each in dense if each.requires_grad], sparse, value.detach())


def through(trunk: Any, inputs: Tensor) -> Any:
    """What a network makes of its inputs, each process having computed some rows of it."""
    team = _dividing.get()
    place = None if team is None else team.place(len(inputs))
    if team is None or place is None or not any(True for _ in trunk.parameters()):
        return trunk(inputs)
    with _set(_part, Part(team, place, len(inputs))):
        mine = trunk(inputs[place])
    return _total().apply(_among(mine, place, len(inputs)), team)


def _among(mine: Tensor, place: slice, number: int) -> Tensor:
    """Rows in their place among so many, the others being zero, in the same layout."""
    sides = [0, 0] * (mine.ndim - 1) + [place.start, number - place.stop]
    found: Tensor = need_torch().nn.functional.pad(mine, sides)
    return found


@cache
def _total() -> Any:
    """The sum over all processes, as a function that has a gradient: what all of them lose by it, summed."""

    class Total(need_torch().autograd.Function):  # type: ignore[misc]  # torch is imported late
        @staticmethod
        def forward(context: Any, mine: Tensor, team: Team) -> Tensor:
            context.team = team
            return team.total(mine)

        @staticmethod
        def backward(context: Any, slope: Tensor) -> tuple[Tensor, None]:
            return context.team.total(slope), None

    return Total


# ---------------------------------------------------------------------- layers


@contextlib.contextmanager
def sharing(model: nn.Module, team: Team) -> Iterator[None]:
    """A block in which dropout and norms of batches know that they may see a part of a batch only."""
    if team.size == 1:
        yield
        return
    layers = need_torch().nn.modules
    kinds = {layers.dropout._DropoutNd: _dropped, layers.batchnorm._BatchNorm: _normed}
    changed: list[Any] = []
    try:
        for layer in model.modules():
            for kind, forward in kinds.items():
                if isinstance(layer, kind) and not isinstance(layer, layers.batchnorm.SyncBatchNorm):
                    layer.forward = partial(forward, layer)
                    changed.append(layer)
        yield
    finally:
        for layer in changed:
            del layer.forward


def _dropped(layer: Any, rows: Tensor) -> Any:
    """Dropout of the whole batch, of which the rows at hand are a part: all processes draw the same."""
    part = _part.get()
    if part is None or not layer.training:
        return type(layer).forward(layer, rows)
    own = part.own(len(rows))
    return type(layer).forward(layer, _among(rows, own, part.times(len(rows)) * part.whole))[own]


def _normed(layer: Any, rows: Tensor) -> Any:
    """A norm by the moments of the whole batch; these are summed, and so is what is lost by them."""
    part = _part.get()
    if part is None or not (layer.training or layer.running_mean is None):
        return type(layer).forward(layer, rows)
    layer._check_input_dim(rows)
    others = [0, *range(2, rows.ndim)]
    number = part.times(len(rows)) * part.whole * rows[:1, :1].numel()
    with need_torch().no_grad():
        mean = part.team.total(rows.sum(dim=others)) / number
        variance = part.team.total((rows - _by_channel(mean, rows)).square().sum(dim=others)) / number
        if layer.training and layer.track_running_stats:
            layer.num_batches_tracked.add_(1)
            new = 1 / float(layer.num_batches_tracked) if layer.momentum is None else layer.momentum
            layer.running_mean.lerp_(mean, new)
            layer.running_var.lerp_(variance * (number / max(number - 1, 1)), new)
    return _norm().apply(rows, layer.weight, layer.bias, mean, variance, layer.eps, number, part.team)


def _by_channel(numbers: Tensor, rows: Tensor) -> Tensor:
    """A number for every channel, shaped to be taken with rows."""
    return numbers.view(1, -1, *[1] * (rows.ndim - 2))


@cache
def _norm() -> Any:
    """A norm of rows by moments of a batch of which they are a part, as a function that has a gradient.

    With x̂ = (x − mean) s, s = 1 / √(variance + eps), and y = w x̂ + b, a batch of n has

        ∂L/∂x = w s (∂L/∂y − Σ ∂L/∂y / n − x̂ Σ x̂ ∂L/∂y / n)

    in which the sums go over all processes. Torch has the first term, and what this process adds to the sums.
    """
    torch = need_torch()

    class Norm(need_torch().autograd.Function):  # type: ignore[misc]  # torch is imported late
        @staticmethod
        def forward(
            context: Any, rows: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, variance: Tensor,
            eps: float, number: int, team: Team,
        ) -> Any:  # fmt: skip
            context.save_for_backward(rows, weight, mean, variance)
            context.eps, context.number, context.team = eps, number, team
            return torch.nn.functional.batch_norm(rows, mean, variance, weight, bias, eps=eps)

        @staticmethod
        def backward(context: Any, slope: Tensor) -> tuple[Any, ...]:
            rows, weight, mean, variance = context.saved_tensors
            s = torch.rsqrt(variance + context.eps)
            w = torch.ones_like(mean) if weight is None else weight
            direct, by_weight, by_bias = torch.ops.aten.native_batch_norm_backward(
                slope, rows, w, mean, variance, mean, s, False, context.eps, [True, True, True]
            )
            along, level = context.team.total(torch.stack([by_weight, by_bias])) / context.number
            tilt = w * s * s * along
            found = direct - _by_channel(w * s * level - tilt * mean, rows) - rows * _by_channel(tilt, rows)
            own = (None, None) if weight is None else (by_weight, by_bias)
            return found, *own, None, None, None, None, None

    return Norm
