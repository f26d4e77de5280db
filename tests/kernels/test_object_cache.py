"""Machine code is made once per machine, kept safely, and never needed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")

PREAMBLE = """
    import sys
    import numpy as np
    from wisecrowd import kernels
    from wisecrowd.data.layout import Layout
    from wisecrowd.errors import MissingExtra

    LARGE = kernels.COMPILED_MIN_CELLS // 2

    def run(n_votes, **options):
        layout = Layout(np.arange(0, n_votes + 1, 5), np.zeros(n_votes, dtype=np.int32), None, 1)
        found = kernels.expect(layout, np.full(2, 0.5), np.full((1, 2), 0.5), **options)
        assert np.isclose(found.class_counts.sum(), n_votes / 5)
        return found
"""


def in_a_new_process(code: str, cache: Path) -> None:
    script = textwrap.dedent(PREAMBLE) + textwrap.dedent(code)
    environment = {**os.environ, "WISECROWD_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@needs_numba
def test_small_work_loads_no_compiler_and_large_work_loads_it_once_per_machine(tmp_path: Path) -> None:
    first = """
        run(LARGE - 5)
        assert not {"numba", "llvmlite"} & set(sys.modules)
        run(LARGE)
        assert "numba" in sys.modules
    """
    in_a_new_process(first, tmp_path)
    kept = list((tmp_path / "kernels").iterdir())
    assert len(kept) == 1
    next_time = """
        run(LARGE)
        assert "llvmlite" in sys.modules
        assert "numba" not in sys.modules
    """
    in_a_new_process(next_time, tmp_path)
    kept[0].write_bytes(kept[0].read_bytes()[:-100])
    in_a_new_process(first, tmp_path)  # what was damaged is made again
    in_a_new_process(next_time, tmp_path)


@pytest.mark.slow
@needs_numba
def test_the_compiled_form_works_where_nothing_can_be_written(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    in_a_new_process("run(10, compiled=True)", occupied / "cannot-be-a-folder")


@needs_numba
def test_code_is_kept_beside_the_module_or_else_in_the_cache_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wisecrowd.kernels import object_cache

    occupied = tmp_path / "file"
    occupied.touch()
    monkeypatch.delenv("WISECROWD_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    beside, of_user = object_cache._candidate_paths("code.o")
    assert beside.parent.name == "__pycache__"
    assert of_user == tmp_path / "user" / "wisecrowd" / "kernels" / "code.o"
    monkeypatch.setattr(object_cache, "_candidate_paths", lambda _: iter([occupied / "code.o", of_user]))
    object_cache._write_object(b"code", "code.o")
    assert object_cache._read_object(of_user) == b"code"
    assert object_cache._read_object(occupied / "code.o") is None


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["numba", "llvmlite"])
def test_without_a_compiler_large_work_is_done_and_only_the_explicit_wish_refused(missing: str, tmp_path: Path) -> None:
    code = f"""
        sys.modules[{missing!r}] = None  # as if it were not installed
        run(LARGE)
        try:
            run(10, compiled=True)
        except MissingExtra as error:
            assert 'pip install "wisecrowd[fast]"' in str(error)
        else:
            raise AssertionError("compiled=True was accepted")
    """
    in_a_new_process(code, tmp_path)
