from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from wisecrowd.errors import InputError
from wisecrowd.nn import checkpoint as _checkpoint
from wisecrowd.nn.checkpoint import Checkpoint, fingerprint

pytest.importorskip("safetensors")

ARRAYS = hnp.arrays(
    st.sampled_from([np.float32, np.float64, np.int64, np.uint8, np.bool_]), hnp.array_shapes(min_dims=0, min_side=0)
)


@given(arrays=st.dictionaries(st.text(min_size=1).filter(lambda name: name != "__metadata__"), ARRAYS, max_size=4))
def test_what_is_read_is_what_was_written(arrays: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    place = Checkpoint(tmp_path_factory.mktemp("kept") / "fit.safetensors", {"seed": 0})
    place.write(arrays)
    found = place.read()
    assert found is not None
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
        assert found[name].tobytes() == array.tobytes()


def test_a_view_is_written_as_it_looks(tmp_path: Path) -> None:
    place = Checkpoint(tmp_path / "fit.safetensors", {})
    place.write({"turned": np.arange(6).reshape(2, 3).T})
    found = place.read()
    assert found is not None
    assert found["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_a_writing_that_fails_leaves_the_one_before(tmp_path: Path) -> None:
    place = Checkpoint(tmp_path / "fit.safetensors", {})
    place.write({"kept": np.ones(2)})
    with pytest.raises(Exception):  # noqa: B017  # whatever safetensors says of a dtype it does not have
        place.write({"text": np.array(["a"], dtype=object)})
    found = place.read()
    assert found is not None
    assert found["kept"].tolist() == [1, 1]
    assert [file.name for file in tmp_path.iterdir()] == ["fit.safetensors"]


def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.safetensors"
    Checkpoint(path, {"seed": 0, "data": "a"}).write({"kept": np.ones(2)})
    with pytest.raises(InputError, match="data is 'a' there and 'b' here"):
        Checkpoint(path, {"seed": 0, "data": "b"}).read()
    from safetensors.numpy import save_file

    save_file({"kept": np.ones(2)}, path)
    with pytest.raises(InputError, match="does not say to which"):
        Checkpoint(path, {}).read()
    path.write_text("hello")
    with pytest.raises(InputError, match=r"is no checkpoint.*delete it"):
        Checkpoint(path, {}).read()


def test_writing_takes_a_small_part_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        now = 100.0

        @classmethod
        def monotonic(cls) -> float:
            cls.now += 0.5  # so that a writing seems to take half a second
            return cls.now

    monkeypatch.setattr(_checkpoint, "time", Clock)
    place = Checkpoint(tmp_path / "fit.safetensors", {})
    written: list[float] = []

    def arrays() -> dict[str, Any]:
        written.append(Clock.now)
        return {"kept": np.ones(1)}

    for _ in range(100):
        place.offer(arrays)
    assert len(written) == 5  # in 50 seconds, one every ten
    place.offer(arrays, last=True)
    assert len(written) == 6


def test_fingerprints_tell_contents_apart() -> None:
    rows = np.arange(6.0)
    parts: list[tuple[Any, ...]] = [
        (rows,), (rows.reshape(2, 3),), (np.nextafter(rows, 9),), (rows, None), (None, rows), (rows, 1),
        (rows, "1"), (rows.astype(np.float32),),
    ]  # fmt: skip
    assert len({fingerprint(*each) for each in parts}) == len(parts)
    assert fingerprint(rows.reshape(2, 3).T) == fingerprint(rows.reshape(2, 3).T.copy())
