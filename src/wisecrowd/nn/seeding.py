"""Where torch computes, and chance that is nobody else's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.checkpoint import Arrays

if TYPE_CHECKING:
    from torch import device


def chosen_device(name: str) -> device:
    """The device of that name; "auto" is a graphics card where there is one.

    >>> chosen_device("cpu").type
    'cpu'
    """
    torch = need_torch()
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(name)
        torch.empty(0, device=found)
        if found.type not in ("cpu", "cuda", "xpu"):
            raise RuntimeError("its random stream cannot be put back where it was")
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # torch has no error of its own for this
        raise UsageError(
            f"torch has no device {name!r} here ({str(error).splitlines()[0]}); use 'cpu' or 'auto'"
        ) from None
    return found


@contextlib.contextmanager
def own_chance(place: device, state: Arrays | int) -> Iterator[Callable[[], Arrays]]:
    """A block in which layers draw (initial weights, dropout) from a stream of its own, by seed or from where it was.

    Yields a function that says where the stream is. Torch's layers know only the global stream, which is therefore
    lent to the block and put back after it.

    >>> torch = need_torch()
    >>> before = torch.get_rng_state()
    >>> with own_chance(torch.device("cpu"), 0) as where:
    ...     _ = torch.rand(3)
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    torch = need_torch()
    # A card without a number is the one that this process uses now, which a tensor knows.
    beside = [] if place.type == "cpu" else [torch.empty(0, device=place).device]
    kind = "cuda" if place.type == "cpu" else place.type
    library = getattr(torch, kind)
    with torch.random.fork_rng(devices=beside, device_type=kind):
        if isinstance(state, int):
            torch.default_generator.manual_seed(state)
            for _ in beside:
                library.manual_seed(state)
        else:
            torch.set_rng_state(torch.from_numpy(state["cpu"].copy()))
            for one in beside:
                library.set_rng_state(torch.from_numpy(state["beside"].copy()), one)

        def where() -> Arrays:
            found = {"cpu": torch.get_rng_state().numpy()}
            for one in beside:
                found["beside"] = library.get_rng_state(one).numpy()
            return found

        yield where
