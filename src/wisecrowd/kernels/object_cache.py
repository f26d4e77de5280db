# mypy: disable-error-code="import-untyped, no-untyped-call"
"""Cache of the compiled kernels: object files on disk that load without numba.

Importing numba takes more than half a second in every process, loading an object file a tenth of that. The files lie in
``__pycache__`` beside this module, in the user's cache folder if that is not writable, or in the folder named by the
environment variable ``WISECROWD_CACHE``. If none is writable, every process compiles again.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import os
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numpy as np
from llvmlite import binding

from wisecrowd.utils.files import atomic_path

DIGEST_SIZE = hashlib.sha256().digest_size  # bytes before the code in an object file


class KernelVariant(NamedTuple):
    """Kernel and types that machine code is compiled for.

    Attributes
    ----------
    kernel : {"expect", "count"}
        Name of the kernel.
    dtype : {"float64", "float32"}
        Type of the tables.
    n_classes : int, default 0
        Exact number of classes, or 0 for any number.
    weighted : bool, default False
        Whether votes have weights.
    has_gold : bool, default False
        Whether the truth of some tasks is known.

    Examples
    --------
    >>> KernelVariant("count", "float64").n_classes
    0
    """

    kernel: str
    dtype: str
    n_classes: int = 0
    weighted: bool = False
    has_gold: bool = False


#: Two threads that load kernels at the same time would create two LLVM engines over one target machine.
_LOADING = threading.Lock()


def load(variant: KernelVariant) -> Callable[..., float]:
    """Load a kernel from the cache, or compile it.

    Parameters
    ----------
    variant : KernelVariant
        Kernel and types.

    Returns
    -------
    callable
        Function of integers, C-contiguous arrays of the right type, and None. It releases the interpreter lock.

    Raises
    ------
    ImportError
        If the kernel must be compiled and numba is missing.

    Examples
    --------
    >>> load(KernelVariant("count", "float64")) is load(KernelVariant("count", "float64"))
    True
    """
    with _LOADING:
        return _load_once(variant)


@cache
def _load_once(variant: KernelVariant) -> Callable[..., float]:
    """Load a kernel that this process has not loaded yet."""
    name = _file_name(variant)
    code = next(filter(None, map(_read_object, _candidate_paths(name))), None)
    if code is None:
        from wisecrowd.kernels import compiled

        code, self_contained = compiled.compile_kernel(variant)
        if self_contained:
            _write_object(code, name)
    return _link_function(code)


@cache
def target_machine() -> Any:
    """Return LLVM's target machine for this processor.

    Returns
    -------
    llvmlite.binding.TargetMachine

    Examples
    --------
    >>> target_machine() is target_machine()
    True
    """
    with contextlib.suppress(RuntimeError):  # required by old versions of llvmlite, an error in new ones
        binding.initialize()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=3, jit=True
    )


def _link_function(code: bytes) -> Callable[..., float]:
    """Return the function ``kernel`` of an object file."""
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine())
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()

    def function(*arguments: Any) -> float:
        result, exception = ctypes.c_double(), ctypes.c_void_p()
        addresses = [a.ctypes.data if isinstance(a, np.ndarray) else a or 0 for a in arguments]
        # The lookup is inside the function, so that it keeps the engine and its code alive.
        kernel = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_ssize_t] * (2 + len(addresses)))(
            engine.get_function_address("kernel")
        )
        kernel(ctypes.addressof(result), ctypes.addressof(exception), *addresses)
        return result.value

    return function


def _file_name(variant: KernelVariant) -> str:
    """Return a file name that depends on everything the code depends on: kernel, source, compiler and processor."""
    source = Path(__file__).with_name("compiled.py").read_bytes()
    processor = binding.get_host_cpu_name() + binding.get_host_cpu_features().flatten()
    key = hashlib.sha256(source + repr((variant, llvmlite.__version__, processor)).encode()).hexdigest()
    return f"{variant.kernel}-{key[:32]}.o"


def _candidate_paths(name: str) -> Iterator[Path]:
    """Yield the paths of an object file in the order of preference."""
    if chosen := os.environ.get("WISECROWD_CACHE"):
        yield Path(chosen) / "kernels" / name
        return
    yield Path(importlib.util.cache_from_source(__file__)).with_name(name)
    with contextlib.suppress(RuntimeError):  # the user has no home folder
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wisecrowd" / "kernels" / name


def _read_object(path: Path) -> bytes | None:
    """Return the code in an object file, or None if it is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, code = content[:DIGEST_SIZE], content[DIGEST_SIZE:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write_object(code: bytes, name: str) -> None:
    """Write code to the first candidate path that is writable."""
    for path in _candidate_paths(name):
        with contextlib.suppress(OSError):
            with atomic_path(path) as partial:
                partial.write_bytes(hashlib.sha256(code).digest() + code)
            return
