"""Fake GPU: tensors that were sent to it compute on the CPU, but may not meet tensors that were left there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

#: Functions through which a tensor may come from another device, or that only read it.
CROSSINGS = ("to", "cpu", "copy_", "data.__set__", "_has_compatible_shallow_copy_type")
#: Functions that a tensor on a GPU refuses.
REFUSED = ("numpy", "__array__")


class FakeGPU(TorchFunctionMode):
    """Mode in which the device "cuda" exists; it records the functions that mix devices."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed: list[str] = []
        self.n_calls = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function of torch on the CPU, and mark its result if it is on the fake GPU."""
        kwargs = dict(kwargs or {})
        if func in (torch.device, torch._C._nn._parse_to):
            return func(*args, **kwargs)
        name = getattr(func, "__name__", str(func))
        if name in ("__get__", "__set__"):
            name = f"{func.__self__.__name__}.{name}"
        if name == "device.__get__":
            return torch.device("cuda", 0) if is_on_gpu(args[0]) else torch.device("cpu")
        target = find_device(name, args, kwargs)
        leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        on_gpu = [is_on_gpu(leaf) for leaf in leaves]
        if any(on_gpu) and name in REFUSED:
            self.mixed.append(f"{name} of a tensor on the GPU")
        if any(on_gpu) and name not in CROSSINGS:
            self.n_calls += 1
            cpu = [leaf for leaf, there in zip(leaves, on_gpu, strict=True) if not there and leaf.dim() > 0]
            if cpu:
                self.mixed.append(f"{name} with a tensor of shape {tuple(cpu[0].shape)} on the CPU")
        plain_args, plain_kwargs = tree_map(to_cpu_device, (args, kwargs))
        result = func(*plain_args, **plain_kwargs)
        if name == "data.__set__":
            set_on_gpu(leaves[0], value=on_gpu[1])
        if name.endswith("__set__"):
            return result
        if name == "cpu" or (target is not None and target.type == "cpu" and name == "to"):
            return detach_marked(result, leaves)
        is_there = (target is not None and target.type == "cuda") or (target is None and any(on_gpu))
        if is_there:
            if not on_gpu or not on_gpu[0]:
                result = detach_marked(result, leaves)
            for leaf in tree_leaves(result):
                if isinstance(leaf, torch.Tensor):
                    set_on_gpu(leaf, value=True)
        return result


def is_on_gpu(tensor: torch.Tensor) -> bool:
    return bool(tensor.__dict__.get("_on_fake_gpu", False))


def set_on_gpu(tensor: torch.Tensor, *, value: bool) -> None:
    tensor.__dict__["_on_fake_gpu"] = value


def find_device(name: str, args: Any, kwargs: Any) -> torch.device | None:
    """Return the device that a call asks for: by name, as an argument, or as that of another tensor."""
    for value in [kwargs.get("device"), kwargs.get("other"), *args[1:]]:
        if isinstance(value, torch.Tensor) and name == "to":
            return torch.device("cuda" if is_on_gpu(value) else "cpu")
        if isinstance(value, torch.device):
            return value
        if isinstance(value, str) and value.split(":")[0] in ("cuda", "cpu"):
            return torch.device(value)
    return None


def to_cpu_device(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return "cpu" if isinstance(value, str) and value.split(":")[0] == "cuda" else value


def detach_marked(result: Any, inputs: list[torch.Tensor]) -> Any:
    """Return a result that is another object than any input, without a mark."""
    if isinstance(result, torch.Tensor) and any(result is tensor for tensor in inputs):
        with torch._C.DisableTorchFunction():
            result = result.view_as(result)
    for leaf in tree_leaves(result):
        if isinstance(leaf, torch.Tensor):
            set_on_gpu(leaf, value=False)
    return result


@contextmanager
def use_fake_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGPU]:
    """Pretend that there is a GPU, inside a block."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "manual_seed", lambda _seed: None)
    state = torch.zeros(16, dtype=torch.uint8)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda *_device: state.clone())
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda *_state: None)
    with FakeGPU() as mode:
        yield mode
