# mypy: disable-error-code="import-untyped, no-untyped-call"
"""Machine code of the compiled kernels: made by numba once, kept on disk, and loaded without numba ever after.

Waking numba costs every process more than half a second, even when all it wants was compiled before; to load an object
file costs a tenth of that. The file lies where Python keeps the compiled form of this module, or in the user's cache
folder when that cannot be written, or in ``WISECROWD_CACHE``; if none can be written, every process compiles anew.
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

DIGEST = hashlib.sha256().digest_size


class Variant(NamedTuple):
    """What code is made for."""

    kernel: str
    """"expect" or "count"."""
    dtype: str
    """Of the tables: "float64" or "float32"."""
    n_classes: int = 0
    """0: any number."""
    weighted: bool = False
    clamped: bool = False


#: Two threads that load a kernel at once would make two engines of LLVM's over one description of the processor.
_LOADING = threading.Lock()


def load(variant: Variant) -> Callable[..., float]:
    """The kernel as a function of integers, arrays (C-contiguous, of the right type) and None. It holds no lock.

    Raises ImportError when it must be compiled and numba is missing.
    """
    with _LOADING:
        return _loaded(variant)


@cache
def _loaded(variant: Variant) -> Callable[..., float]:
    name = _name(variant)
    code = next(filter(None, map(_read, _places(name))), None)
    if code is None:
        from wisecrowd.kernels import compiled as _compiled

        code, self_contained = _compiled.machine_code(variant)
        if self_contained:
            _keep(code, name)
    return _function(code)


@cache
def target_machine() -> Any:
    """LLVM's description of this very processor."""
    with contextlib.suppress(RuntimeError):  # needed by old versions, refused by new ones
        binding.initialize()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=3, jit=True
    )


def _function(code: bytes) -> Callable[..., float]:
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine())
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()

    def function(*arguments: Any) -> float:
        result, exception = ctypes.c_double(), ctypes.c_void_p()
        addresses = [a.ctypes.data if isinstance(a, np.ndarray) else a or 0 for a in arguments]
        # Looked up here, so that the function keeps the engine, and with it the code, alive.
        kernel = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_ssize_t] * (2 + len(addresses)))(
            engine.get_function_address("kernel")
        )
        kernel(ctypes.addressof(result), ctypes.addressof(exception), *addresses)
        return result.value

    return function


def _name(variant: Variant) -> str:
    """Differs whenever the code would: by kernel, source, compiler and processor."""
    source = Path(__file__).with_name("_compiled.py").read_bytes()
    processor = binding.get_host_cpu_name() + binding.get_host_cpu_features().flatten()
    key = hashlib.sha256(source + repr((variant, llvmlite.__version__, processor)).encode()).hexdigest()
    return f"{variant.kernel}-{key[:32]}.o"


def _places(name: str) -> Iterator[Path]:
    if chosen := os.environ.get("WISECROWD_CACHE"):
        yield Path(chosen) / "kernels" / name
        return
    yield Path(importlib.util.cache_from_source(__file__)).with_name(name)
    with contextlib.suppress(RuntimeError):  # nobody's home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wisecrowd" / "kernels" / name


def _read(path: Path) -> bytes | None:
    """What was kept, unless it is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, code = content[:DIGEST], content[DIGEST:]
    return code if hashlib.sha256(code).digest() == digest else None


def _keep(code: bytes, name: str) -> None:
    for path in _places(name):
        with contextlib.suppress(OSError):
            with atomic_path(path) as partial:
                partial.write_bytes(hashlib.sha256(code).digest() + code)
            return
