"""Devices, and random streams that leave the global random state of torch unchanged."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.checkpoints import Arrays
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch

if TYPE_CHECKING:
    import torch

#: Kinds of devices whose random state torch can save and restore.
DEVICE_TYPES = ("cpu", "cuda", "xpu", "mps")
#: Drawn plus remaining words of a Mersenne Twister with 624 words: before the first number, and afterwards.
TWISTER_POSITIONS = (1, 625)
#: Bytes of the state of a random stream on a GPU: a seed and an offset.
GPU_STATE_BYTES = 16


def select_device(name: str) -> torch.device:
    """Return a torch device by name.

    Parameters
    ----------
    name : str
        "cpu", "cuda", "mps", …, or "auto" for a GPU of CUDA if there is one.

    Returns
    -------
    torch.device

    Raises
    ------
    UsageError
        If torch cannot use the device.

    Examples
    --------
    >>> select_device("cpu").type
    'cpu'
    """
    torch = import_torch()
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        selected = torch.device(name)
        torch.empty(0, device=selected)
        if selected.type not in DEVICE_TYPES:
            raise RuntimeError("its random state cannot be restored")
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # torch has no error of its own for this
        raise UsageError(
            f"torch cannot use the device {name!r} ({str(error).splitlines()[0]}); use 'cpu' or 'auto'"
        ) from None
    return selected


@contextlib.contextmanager
def fork_random_state(device: torch.device, state: Arrays | int) -> Iterator[Callable[[], Arrays]]:
    """Run a block with a random stream of its own and restore the global stream afterwards.

    Layers draw initial weights and dropout masks from the global stream of torch, so the block borrows it.

    Parameters
    ----------
    device : torch.device
        Device whose stream is forked, in addition to that of the CPU.
    state : int or dict of arrays
        Seed, or a state that the yielded function returned earlier.

    Yields
    ------
    callable
        Function that returns the current state of the stream.

    Examples
    --------
    >>> torch = import_torch()
    >>> before = torch.get_rng_state()
    >>> with fork_random_state(torch.device("cpu"), 0) as get_state:
    ...     _ = torch.rand(3)
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    torch = import_torch()
    # A GPU without a number is the current one; the device of a tensor names it.
    gpus = [] if device.type == "cpu" else [torch.empty(0, device=device).device]
    kind = "cuda" if device.type == "cpu" else device.type
    library = SingleDeviceStream(torch.mps) if kind == "mps" else getattr(torch, kind)
    forked = [] if kind == "mps" else gpus  # torch.random.fork_rng passes a device, which torch.mps does not take
    with (
        torch.random.fork_rng(devices=forked, device_type="cuda" if kind == "mps" else kind),
        library.restored() if kind == "mps" else contextlib.nullcontext(),
    ):
        if isinstance(state, int):
            torch.default_generator.manual_seed(state)
            for _ in gpus:
                library.manual_seed(state)
        else:
            torch.set_rng_state(torch.from_numpy(state["cpu"].copy()))
            for gpu in gpus:
                library.set_rng_state(torch.from_numpy(state["gpu"].copy()), gpu)

        def get_state() -> Arrays:
            states = {"cpu": torch.get_rng_state().numpy()}
            for gpu in gpus:
                states["gpu"] = library.get_rng_state(gpu).numpy()
            return states

        yield get_state


class SingleDeviceStream:
    """Random stream of a library with a single device, such as `torch.mps`, with the functions of `torch.cuda`.

    Parameters
    ----------
    library : module
        Library whose ``get_rng_state`` takes no device.
    """

    def __init__(self, library: Any) -> None:
        self.library = library

    def manual_seed(self, seed: int) -> None:
        """Seed the stream.

        Parameters
        ----------
        seed : int
            Seed.
        """
        self.library.manual_seed(seed)

    def get_rng_state(self, device: Any = None) -> Any:
        """Return the state of the stream.

        Parameters
        ----------
        device : torch.device, optional
            Ignored.

        Returns
        -------
        Tensor
        """
        return self.library.get_rng_state()

    def set_rng_state(self, state: Any, device: Any = None) -> None:
        """Set the state of the stream.

        Parameters
        ----------
        state : Tensor
            State.
        device : torch.device, optional
            Ignored.
        """
        self.library.set_rng_state(state)

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Restore the state of the stream after a block."""
        before = self.get_rng_state()
        try:
            yield
        finally:
            self.set_rng_state(before)


def get_sum_dtype(device: torch.device) -> torch.dtype:
    """Return the most precise floating point type of a device, for sums.

    Parameters
    ----------
    device : torch.device
        Device.

    Returns
    -------
    torch.dtype
        Double precision, except for "mps", which has only single precision.

    Examples
    --------
    >>> get_sum_dtype(import_torch().device("cpu"))
    torch.float64
    """
    torch = import_torch()
    return torch.float32 if device.type == "mps" else torch.float64


def check_random_state(state: NDArray[Any]) -> None:
    """Check that an array is the state of a random stream of torch.

    Torch copies the state of its Mersenne Twister from the array. With a position beyond the end of its table it would
    read foreign memory.

    Parameters
    ----------
    state : ndarray of uint8
        State of a generator.

    Raises
    ------
    ValueError
        If the array has another type or length, or an impossible position.

    Examples
    --------
    >>> check_random_state(import_torch().get_rng_state().numpy())
    >>> check_random_state(np.zeros(3, dtype=np.uint8))
    Traceback (most recent call last):
        ...
    ValueError: a random state must be an array of ... bytes; got uint8 of shape (3,)
    """
    own = import_torch().Generator().get_state().numpy()
    n_bytes = len(own)
    is_own = state.shape == own.shape
    gpu_sizes = {GPU_STATE_BYTES}
    if import_torch().backends.mps.is_available():
        gpu_sizes.add(len(import_torch().mps.get_rng_state()))
    if state.dtype != np.uint8 or state.ndim != 1 or not (is_own or len(state) in gpu_sizes):
        raise ValueError(
            f"a random state must be an array of {n_bytes} bytes; got {state.dtype} of shape {state.shape}"
        )
    if is_own and _find_position(own) in TWISTER_POSITIONS and _find_position(state) not in TWISTER_POSITIONS:
        raise ValueError("a random state has an impossible position")


def _find_position(state: NDArray[Any]) -> int:
    """Return the sum of the numbers of drawn and remaining words, which is one of two constants."""
    _, n_remaining, _, n_drawn = struct.unpack_from("<QiiQ", state.tobytes())
    return int(n_remaining + n_drawn)
