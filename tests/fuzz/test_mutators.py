"""Mutators: pure, seeded, and able to change what they are for."""

from __future__ import annotations

import contextlib
import gzip
import io
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, UnidentifiedImageError
from tests.fuzz import mutators

JSON = b'[{"id": 1, "label": ["a", {"b": null}]}, {"id": 2, "label": []}]'
CSV = b"task,worker,label\nt1,ann,cat\nt2,ann,dog\nt2,bob,cat\n"


def _npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, task=np.array(["t1", "t2"]), X=np.eye(2))
    return file.getvalue()


def _npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.eye(2))
    return file.getvalue()


def _parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"task": ["t1", "t2"], "label": ["a", "b"]}), sink)
    return sink.getvalue().to_pybytes()


def _image(name: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(file, name)
    return file.getvalue()


SAMPLES = {
    "bytes": CSV,
    "text": CSV,
    "json": JSON,
    "csv": CSV,
    "gzip": mutators.gzip_bytes(CSV),
    "zip": mutators.write_zip({"ann.jsonl": b'{"id": 1}\n', "bob.jsonl": b'{"id": 2}\n'}),
    "array": _npy(),
    "npz": _npz(),
    "parquet": _parquet(),
    "xml": b'<?xml version="1.0"?><annotations><image name="a.jpg"><tag label="cat"/></image></annotations>',
    "image": _image("PNG"),
}
PAIRS = [(kind, mutator) for kind, group in mutators.MUTATORS.items() for mutator in group]


def test_every_kind_has_a_sample() -> None:
    assert SAMPLES.keys() == mutators.MUTATORS.keys()


@pytest.mark.parametrize(("kind", "mutator"), PAIRS, ids=lambda value: getattr(value, "__name__", value))
def test_mutators_are_repeatable_and_change_bytes(kind: str, mutator: mutators.Mutator) -> None:
    changed = []
    for seed in range(6):
        try:
            first = mutator(SAMPLES[kind], np.random.default_rng(seed))
        except mutators.DoesNotFit:  # what the mutator drew cannot be written in this format
            continue
        assert mutator(SAMPLES[kind], np.random.default_rng(seed)) == first
        changed.append(first != SAMPLES[kind])
    assert any(changed)


@pytest.mark.parametrize("kind", [kind for kind in mutators.MUTATORS if kind not in ("bytes", "text")])
def test_bytes_of_another_kind_do_not_stop_a_run(kind: str) -> None:
    for seed in range(10):
        data, names = mutators.mutate(b"\xff\x00 nothing", np.random.default_rng(seed), [kind])
        assert isinstance(data, bytes)
        assert names


def test_json_values_are_written_as_they_stand() -> None:
    texts = [mutators.change_json_value(JSON, np.random.default_rng(seed)).decode() for seed in range(200)]
    assert any("NaN" in text for text in texts)
    assert any("1" * 5000 in text for text in texts)
    assert any("[" * 20_000 in text for text in texts)
    assert not any("\ufdd0" in text or "ufdd0" in text for text in texts)


def test_lines_are_changed_one_by_one() -> None:
    lines = b'{"id": 1}\n{"id": 2}\n'
    changed = [
        mutators.change_json_value(lines, np.random.default_rng(seed)).decode().splitlines() for seed in range(20)
    ]
    assert all(('{"id": 1}' in text) != ('{"id": 2}' in text) for text in changed)


def test_bombs_are_small_and_unpack_to_much() -> None:
    rng = np.random.default_rng(0)
    packed = mutators.make_gzip_bomb(SAMPLES["gzip"], rng)
    assert len(packed) < 10 << 20
    with gzip.open(io.BytesIO(packed)) as file:
        assert file.read(len(CSV)) == CSV
        assert len(file.read(50 << 20)) == 50 << 20
    packed = mutators.make_zip_bomb(SAMPLES["zip"], rng)
    assert len(packed) < 10 << 20
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.infolist()[0].compress_size > 1 << 20


def test_overlapping_entries_are_many_names_of_one_stretch() -> None:
    archives = [
        zipfile.ZipFile(io.BytesIO(mutators.overlap_entries(SAMPLES["zip"], np.random.default_rng(seed))))
        for seed in range(6)
    ]
    assert max(len(archive.infolist()) for archive in archives) == 20_000
    assert all({info.header_offset for info in archive.infolist()} == {0} for archive in archives)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_declared_sizes_of_images_change() -> None:
    for name in ("PNG", "JPEG", "GIF"):
        data, sizes = _image(name), set()
        for seed in range(30):
            changed = mutators.change_image_size(data, np.random.default_rng(seed))
            with contextlib.suppress(UnidentifiedImageError, Image.DecompressionBombError):
                sizes.add(Image.open(io.BytesIO(changed)).size)
        assert len(sizes) > 2, name
