"""Steps of optimisers with little overhead per step.

The kernels of a small network take less time than the bookkeeping of `torch.optim`: hooks, profiler records and checks of
every parameter. The functions here do the same arithmetic, to rounding, with one call for all parameters of a group. The
optimiser keeps the moments, so that checkpoints do not change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wisecrowd.nn.backend import import_torch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

#: Devices for which torch has fused kernels.
FUSED_DEVICES = ("cpu", "cuda", "mps")


def make_step(optimiser: Optimizer) -> Callable[[], None]:
    """Return a function that takes a step of an optimiser.

    Parameters
    ----------
    optimiser : torch.optim.Optimizer
        Optimiser with one parameter group.

    Returns
    -------
    callable
        Function without arguments: a fast one for Adam, AdamW and SparseAdam, the optimiser's own otherwise.

    Examples
    --------
    >>> torch = import_torch()
    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> step = make_step(torch.optim.Adam([weight], lr=0.5))
    >>> weight.grad = torch.tensor([3.0])
    >>> step()
    >>> weight.tolist()
    [0.5]
    """
    torch = import_torch()
    if isinstance(optimiser, torch.optim.SparseAdam):
        return LazyAdamStep(optimiser)
    kernels = {torch.optim.Adam: "_fused_adam_", torch.optim.AdamW: "_fused_adamw_"}
    kernel = getattr(torch, kernels.get(type(optimiser), ""), None)
    parameters = optimiser.param_groups[0]["params"]
    is_fast = kernel is not None and all(
        parameter.device.type in FUSED_DEVICES and parameter.is_floating_point() for parameter in parameters
    )
    if is_fast and parameters:
        return FusedAdamStep(optimiser, kernel)

    def take_step() -> None:
        optimiser.step()

    return take_step


class FusedAdamStep:
    """Step of Adam or AdamW for all parameters of a group in one kernel.

    Parameters
    ----------
    optimiser : torch.optim.Adam or torch.optim.AdamW
        Optimiser with one parameter group.
    kernel : callable
        Kernel of torch that updates weights and moments in place.
    """

    def __init__(self, optimiser: Optimizer, kernel: Any) -> None:
        self.optimiser, self.kernel = optimiser, kernel
        self.parameters: list[Tensor] = optimiser.param_groups[0]["params"]
        self._moments: tuple[list[Tensor], list[Tensor], list[Tensor]] | None = None

    def __call__(self) -> None:
        """Update weights and moments by the gradients."""
        torch = import_torch()
        options = self.optimiser.param_groups[0]
        gradients = [parameter.grad for parameter in self.parameters]
        if any(gradient is None for gradient in gradients):  # moments exist only for parameters that had a gradient
            self.optimiser.step()
            self._moments = None
            return
        if self._moments is None:
            self._moments = self._collect_moments()
        means, squares, steps = self._moments
        with torch.no_grad():
            torch._foreach_add_(steps, 1)
            self.kernel(
                self.parameters, gradients, means, squares, [], steps,
                lr=options["lr"], beta1=options["betas"][0], beta2=options["betas"][1],
                weight_decay=options["weight_decay"], eps=options["eps"], amsgrad=False, maximize=False,
            )  # fmt: skip

    def _collect_moments(self) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Return the moments of all parameters; new ones are zero."""
        torch = import_torch()
        states = []
        for parameter in self.parameters:
            state = self.optimiser.state[parameter]
            if not state:
                # As torch.optim.Adam(fused=True): the step count is on the device of the parameter.
                state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
                state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
            states.append(state)
        return (
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["step"] for state in states],
        )


class LazyAdamStep:
    """Step of SparseAdam, which changes only rows with a gradient.

    Parameters
    ----------
    optimiser : torch.optim.SparseAdam
        Optimiser with one parameter group.
    """

    def __init__(self, optimiser: Optimizer) -> None:
        self.optimiser = optimiser

    def __call__(self) -> None:
        """Update the rows of weights and moments that have a gradient."""
        torch = import_torch()
        options = self.optimiser.param_groups[0]
        beta1, beta2 = options["betas"]
        with torch.no_grad():
            for parameter in options["params"]:
                if parameter.grad is None:
                    continue
                if not parameter.grad.is_sparse or parameter.grad.sparse_dim() != 1:
                    self.optimiser.step()  # raises the error of torch, or handles what this class does not
                    return
                state = self.optimiser.state[parameter]
                if not state:
                    state["step"] = 0
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
                state["step"] += 1
                gradient = parameter.grad.coalesce()
                rows, values = gradient.indices()[0], gradient.values()
                if not len(rows):
                    continue
                mean = state["exp_avg"].index_select(0, rows).lerp_(values, 1 - beta1)
                square = state["exp_avg_sq"].index_select(0, rows).lerp_(values * values, 1 - beta2)
                state["exp_avg"].index_copy_(0, rows, mean)
                state["exp_avg_sq"].index_copy_(0, rows, square)
                size = options["lr"] * (1 - beta2 ** state["step"]) ** 0.5 / (1 - beta1 ** state["step"])
                parameter.index_add_(0, rows, mean.div_(square.sqrt_().add_(options["eps"])), alpha=-size)
