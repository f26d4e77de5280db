"""Machine code of the kernels."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")


@needs_numba
def test_code_that_needs_numba_at_run_time_is_told_from_code_that_does_not() -> None:
    """Vector mathematics libraries, for one, are known to numba's processes only: such code is not kept on disk."""
    from llvmlite import binding

    from wisecrowd.kernels import compiled

    text = """
        declare double @log(double)
        declare double @somewhere_else(double)
        define double @wrapper(double %x) {
          %y = call double @somewhere_else(double %x)
          ret double %y
        }
        define double @kernel(double %x) {
          %y = call double @log(double %x)
          ret double %y
        }
    """
    assert compiled._external_calls(binding.parse_assembly(text), "wrapper") == {"log"}
    assert compiled._external_calls(binding.parse_assembly(text), "kernel") == {"somewhere_else"}


@pytest.mark.slow
@needs_numba
@pytest.mark.parametrize(("kernel", "dtype", "n_classes"), [("count", "float32", 0), ("expect", "float64", 2)])
def test_code_is_self_contained(kernel: str, dtype: str, n_classes: int) -> None:
    """Such code is stored, and later runs in processes that do not import numba."""
    from wisecrowd.kernels import compiled
    from wisecrowd.kernels.object_cache import KernelVariant

    code, self_contained = compiled.compile_kernel(KernelVariant(kernel, dtype, n_classes))
    assert code[:4] in (b"\x7fELF", b"\xcf\xfa\xed\xfe") or sys.platform == "win32"
    assert self_contained
