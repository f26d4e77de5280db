"""Fuzzing of stored state: saved methods, shards and checkpoints, damaged or made by a stranger.

A case changes a valid folder or file: bytes, JSON values, headers, types and shapes of arrays, schemas of tables, or whole
files. Most cases get valid digests afterwards, since an attacker who changes a file can compute digests, so that the checks behind
the digests are tested. Then the state is opened and used: it is refused, or it gives results.

    python -m tests.fuzz.stored_state --count 2000 --seed 0
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from tests.fuzz import runner
from tests.fuzz.mutators import mutate
from tests.fuzz.runner import Target

import wisecrowd as wc
from wisecrowd.base.checkpoints import METADATA
from wisecrowd.base.persistence import load
from wisecrowd.base.registry import find
from wisecrowd.data.sharded import ShardInfo, compute_crowd_digest, open_shards, write_shard
from wisecrowd.engines import StreamEngine
from wisecrowd.errors import WisecrowdError
from wisecrowd.utils.stored_files import StoredTable

#: Share of cases with valid digests.
SEALED = 0.75
#: Address space that a case may add. With torch, numba and pyarrow, a process reserves 2.3 GB and uses 0.5 GB before it.
MAX_ALLOCATED_BYTES = 1 << 30
#: Numbers that do not belong into an array.
NUMBERS = (0, -1, 1, 2**31 - 1, -(2**31), 2**31, 2**62, -(2**62), 1e300, -1e300, 1e-300, np.nan, np.inf, -np.inf)
#: Types of arrays.
DTYPES = (
    "<f8",
    "<f4",
    "<f2",
    ">f8",
    "<i8",
    "<i4",
    ">i4",
    "<i2",
    "|i1",
    "<u8",
    "<u4",
    "|u1",
    "|b1",
    "<U3",
    "|S3",
    "<c16",
)

Files = dict[str, bytes]


# ---------------------------------------------------------------------- valid state


def _crowd() -> wc.Crowd:
    rng = np.random.default_rng(0)
    grid = [(task, worker) for task in range(12) for worker in range(4)]
    rows = [(f"t{task:02d}", f"w{worker}", "abc"[(task + (rng.random() < 0.3)) % 3]) for task, worker in grid]
    return wc.Crowd.from_triples(rows, tasks=[f"t{task:02d}" for task in range(12)], classes=["a", "b", "c"])


def _features() -> Any:
    return np.random.default_rng(1).normal(size=(12, 3))


def _read_files(folder: Path) -> Files:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


#: Settings of the methods that are saved, by name; small, so that a case takes milliseconds.
METHODS: dict[str, dict[str, Any]] = {
    "majority-vote": {}, "dawid-skene": {}, "glad": {"max_iter": 3}, "ebcc": {"max_iter": 2, "n_init": 1, "n_subtypes": 2},
    "mace": {"max_iter": 3, "n_init": 1}, "panel": {"groups": {"w0": "g", "w1": "g"}, "kinds": {"w0": "machine", "w1": "machine"}},
    "catd": {}, "ds-fill": {}, "ldplc": {"k": 2}, "raykar": {"max_iter": 2}, "cmm": {"n_groups": 2, "max_iter": 2, "n_init": 1},
    "bradley-terry": {}, "crowd-layer": {"epochs": 1, "hidden": 4}, "two-stage": {"classifier": "mlp"},
}  # fmt: skip


@functools.cache
def _model_files(name: str) -> Files:
    """Return the files of a saved method."""
    method, crowd = find(name)(**METHODS[name]), _crowd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "catd":
            frame = crowd.to_frame().assign(label=np.arange(crowd.n_votes) % 7 + 0.5)
            fitted: Any = method.fit(wc.Crowd.from_frame(frame, numeric=True))  # type: ignore[attr-defined]
        elif name == "bradley-terry":
            rows = [("x", "y", "left"), ("y", "z", "right"), ("x", "z", "left"), ("z", "y", "tie")]
            table = pd.DataFrame(
                [(*row, f"w{k}") for row in rows for k in range(3)], columns=["left", "right", "label", "worker"]
            )
            fitted = method.fit(wc.Comparisons.from_frame(table))  # type: ignore[attr-defined]
        elif name in ("raykar", "cmm", "crowd-layer", "two-stage"):
            fitted = method.fit(_features(), crowd)  # type: ignore[attr-defined]
        else:
            fitted = method.fit(crowd, _features()) if name == "ldplc" else method.fit(crowd)  # type: ignore[attr-defined]
        fitted.save(Path(folder) / "model")
        return _read_files(Path(folder) / "model")


@functools.cache
def _shard_files(kind: str) -> Files:
    """Return the files of a folder of shards."""
    crowd = _crowd()
    if kind == "weighted":
        crowd = crowd.replace_fields(weight=np.linspace(0.5, 2, crowd.n_votes))
    if kind == "counts":
        crowd = crowd.drop_workers()
    with tempfile.TemporaryDirectory() as folder:
        crowd.to_shards(Path(folder) / "crowd", votes_per_shard=16)
        return _read_files(Path(folder) / "crowd")


def _fit_checkpointed(kind: str, place: Path) -> Any:
    """Fit a method that reads and writes a checkpoint at a place."""
    if kind == "em":
        return wc.DawidSkene(checkpoint=str(place / "fit.npz")).fit(_crowd())
    if kind == "restarts":
        return wc.MACE(n_init=2, max_iter=4, checkpoint=str(place / "fit.npz")).fit(_crowd())
    if kind == "gradient":
        return wc.Rasch(max_iter=3, tol=1, checkpoint=str(place / "fit.npz")).fit(_crowd())
    if kind == "network":
        return wc.CrowdLayer(epochs=2, hidden=4, checkpoint=str(place)).fit(_features(), _crowd())
    return wc.DLEM(max_iter=2, hidden=4, checkpoint=str(place)).fit(_features(), _crowd())


@functools.cache
def _checkpoint_files(kind: str) -> Files:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _fit_checkpointed(kind, Path(folder))
        return _read_files(Path(folder))


# ---------------------------------------------------------------------- changes


def _choose(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def change_array(array: Any, rng: np.random.Generator) -> Any:
    """Return an array with other numbers, another type, shape or order."""
    choice = int(rng.integers(9))
    with np.errstate(all="ignore"), contextlib.suppress(ValueError, TypeError, OverflowError, IndexError):
        if choice == 0:  # one number
            changed = np.array(array)
            changed.ravel()[int(rng.integers(changed.size))] = np.asarray(_choose(rng, NUMBERS)).astype(changed.dtype)
            return changed
        if choice == 1:  # all numbers
            return np.full_like(array, np.asarray(_choose(rng, NUMBERS)).astype(array.dtype))
        if choice == 2:
            return array.astype(_choose(rng, DTYPES))
        if choice == 3:  # one more or less along an axis
            axis = int(rng.integers(array.ndim))
            return np.concatenate([array, array], axis) if rng.random() < 0.5 else np.delete(array, 0, axis)
        if choice == 4:
            return _choose(rng, [array.T, array.ravel(), array[None], array[:0], array.sum(), np.zeros((10**15, 0))])
        if choice == 5:
            return np.asfortranarray(array[::-1])
        if choice == 6:
            return rng.permutation(array)
        if choice == 7:
            return np.array([None, "x", {}], dtype=object)
        return -array
    return np.zeros(int(rng.integers(4)))


def change_arrays(data: bytes, rng: np.random.Generator) -> bytes:
    """Change, remove, add or exchange arrays of an archive."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays: dict[str, Any] = dict(archive)
    name = _choose(rng, sorted(arrays))
    choice = rng.random()
    if choice < 0.7:
        arrays[name] = change_metadata(arrays[name], rng) if name == METADATA else change_array(arrays[name], rng)
    elif choice < 0.8:
        arrays.pop(name)
    elif choice < 0.9:
        other = _choose(rng, sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
    else:
        arrays[_choose(rng, ["more_", "fit", "__class__", "../x", "array-99", "posterior_", "x" * 300])] = np.ones(2)
    stream = io.BytesIO()
    with contextlib.suppress(ValueError):
        (np.savez_compressed if rng.random() < 0.05 else np.savez)(stream, **arrays)
    return stream.getvalue()


def change_metadata(text: Any, rng: np.random.Generator) -> Any:
    """Change the JSON text of a checkpoint, mostly without its owner, so that the file still belongs to its fit."""
    metadata = json.loads(str(text))
    key = _choose(rng, ["values", "values", "values", "names", "owner"])
    changed, _ = mutate(json.dumps(metadata[key]).encode(), rng, ["json"], max_mutations=1)
    rest = ", ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in metadata.items() if name != key)
    text = "{" + rest + f', "{key}": ' + changed.decode(errors="replace").replace("\0", "") + "}"
    return np.array(text.encode(errors="replace").decode())


def change_table(data: bytes, rng: np.random.Generator) -> bytes:
    """Write an Arrow file with other columns, types, batches or compression."""
    table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
    name = _choose(rng, table.column_names)
    position, column = table.column_names.index(name), table[name].combine_chunks()
    options, repeats = pa.ipc.IpcWriteOptions(), 1
    choice = int(rng.integers(10))
    with contextlib.suppress(pa.ArrowException, ValueError, TypeError, OverflowError):
        if choice == 0:
            kinds = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.string(),
                     pa.large_string(), pa.binary(), pa.bool_(), pa.timestamp("ns"), pa.decimal128(20)]  # fmt: skip
            table = table.set_column(position, name, column.cast(_choose(rng, kinds), safe=False))
        elif choice == 1:
            values = column.to_pylist()
            values[int(rng.integers(len(values)))] = _choose(
                rng, [None, -1, -5, 2**31 - 1, -(2**31), 1e300, "", "\ud7ff", "a" * 9999]
            )
            table = table.set_column(position, name, pa.array(values, column.type))
        elif choice == 2:
            table = table.drop_columns([name])
        elif choice == 3:
            table = table.rename_columns([_choose(rng, ["", "pair", "value", "x", name]) for _ in table.column_names])
        elif choice == 4:
            table = _choose(
                rng,
                [
                    table.slice(1),
                    table.slice(0, 0),
                    pa.concat_tables([table, table]),
                    table.take(rng.permutation(len(table))),
                ],
            )
        elif choice == 5:
            repeats = 2
        elif choice == 6:
            options = pa.ipc.IpcWriteOptions(compression=_choose(rng, ["lz4", "zstd"]))
        elif choice == 7:
            nested = [column.dictionary_encode(), pa.array([[value] for value in column.to_pylist()]),
                      pa.array([{"x": value} for value in column.to_pylist()]), pa.nulls(len(column))]  # fmt: skip
            table = table.set_column(position, name, _choose(rng, nested))
        elif choice == 8:
            table = table.append_column(_choose(rng, [name, "weight", "other"]), column)
        else:
            pandas = {
                "index_columns": [{"kind": "range", "start": 0, "stop": 10**15, "step": 1, "name": None}],
                "columns": [],
                "column_indexes": [],
            }
            table = table.replace_schema_metadata({b"pandas": _choose(rng, [b"{", b"[]", json.dumps(pandas).encode()])})
    stream = io.BytesIO()
    with pa.ipc.new_file(stream, table.schema, options=options) as writer:
        for _ in range(repeats):
            writer.write_table(table)
    return stream.getvalue()


#: Mutators of `tests.fuzz.mutators` by suffix.
KINDS = {".json": ["json", "json", "bytes"], ".npz": ["npz", "zip", "bytes"], ".arrow": ["bytes"]}
#: Changes of contents by suffix.
CONTENT: dict[str, Callable[[bytes, np.random.Generator], bytes]] = {".npz": change_arrays, ".arrow": change_table}


def change_files(files: Files, rng: np.random.Generator) -> tuple[Files, str]:
    """Change one or two files by their contents or bytes."""
    changed, changes = dict(files), []
    for _ in range(1 + int(rng.random() < 0.25)):
        name = _choose(rng, sorted(changed))
        suffix = Path(name).suffix
        if suffix in CONTENT and rng.random() < 0.7:
            try:
                changed[name] = CONTENT[suffix](changed[name], rng)
                changes.append(f"{name}: {CONTENT[suffix].__name__}")
                continue
            except Exception:  # changed before, and not readable any more
                pass
        with contextlib.suppress(UnicodeEncodeError):  # a name in an archive that was changed before
            changed[name], mutators = mutate(changed[name], rng, KINDS.get(suffix, ["bytes"]))
            changes.append(f"{name}: {', '.join(mutators)}")
    return changed, "; ".join(changes)


def change_folder(folder: Path, others: Files, rng: np.random.Generator) -> str:
    """Remove, exchange, add or replace a file of a folder."""
    names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    name, other = _choose(rng, names), _choose(rng, names)
    file, choice = folder / name, int(rng.integers(8))
    if choice == 0:
        content = file.read_bytes()
        file.write_bytes((folder / other).read_bytes())
        (folder / other).write_bytes(content)
        return f"{name} and {other} exchanged"
    if choice == 1:
        more = _choose(rng, ["more_.npz", "999999.votes.arrow", "learner_", "x"])
        file.with_name(more).write_bytes(file.read_bytes())
        return f"another file {more}"
    if choice == 2:
        file.write_bytes(others[_choose(rng, sorted(others))])
        return f"{name} of another kind"
    file.unlink()
    if choice == 3:
        file.mkdir()
        return f"{name} is a folder"
    if choice == 4:
        os.mkfifo(file)
        return f"{name} is a pipe"
    if choice == 5:
        file.symlink_to(_choose(rng, ["/dev/zero", "/dev/null", name, "/etc/passwd", "."]))
        return f"{name} is a link"
    if choice == 6:
        file.symlink_to(folder / other)
        return f"{name} is a link to {other}"
    return f"{name} is missing"


# ---------------------------------------------------------------------- digests


def seal_model(folder: Path) -> None:
    """Write the digests of changed files into ``method.json``."""
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError):
        state = json.loads((folder / "method.json").read_text())
        for name in state["sha256"]:
            if (folder / name).is_file() and (folder / name).stat().st_size:
                state["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        (folder / "method.json").write_text(json.dumps(state))


def seal_shards(folder: Path) -> None:
    """Write the digests of changed files into ``crowd.json``."""
    with (
        contextlib.suppress(Exception),
        tempfile.TemporaryDirectory() as scratch,
    ):  # unreadable files keep their digests
        content = json.loads((folder / "crowd.json").read_text())
        for entry in content["shards"]:
            with contextlib.suppress(Exception):
                votes, tasks = (
                    pa.ipc.open_file(folder / "shards" / f"{entry['name']}.{kind}.arrow").read_all()
                    for kind in ("votes", "tasks")
                )
                weight = votes["weight"].to_numpy() if content["weighted"] else None
                ids, counts = tasks["task"].combine_chunks(), tasks["n_votes"].to_numpy()
                entry["sha256"] = write_shard(scratch, 0, ids, counts, votes["pair"].to_numpy(), weight).sha256
        infos = [ShardInfo(**entry) for entry in content["shards"]]
        ids = {
            name: StoredTable(folder / f"{name}.arrow", "").read_column("value")
            for name in ("classes", "workers")
            if (folder / f"{name}.arrow").exists()
        }
        pairs = StoredTable(folder / "pairs.arrow", "")
        codes = [pairs.read_numbers(name, [np.int32]) for name in ("worker", "label")]
        content["sha256"] = compute_crowd_digest(ids["classes"], ids.get("workers"), *codes, infos)
        (folder / "crowd.json").write_text(json.dumps(content))


# ---------------------------------------------------------------------- cases


def _write(files: Files, folder: Path) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _prepare(
    files: Files, others: Files, seal: Callable[[Path], None] | None, folder: Path, rng: np.random.Generator
) -> str:
    state = folder / "state"
    state.mkdir()
    if rng.random() < 0.15:
        _write(files, state)
        return change_folder(state, others, rng)
    changed, change = change_files(files, rng)
    _write(changed, state)
    if seal is not None and rng.random() < SEALED:
        seal(state)
        change += "; sealed"
    return change


@contextlib.contextmanager
def _limited_memory() -> Iterator[None]:
    """Limit what a case may allocate, in a process of the runner; the tests run cases in their own process."""
    if multiprocessing.parent_process() is None:
        yield
        return
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + MAX_ALLOCATED_BYTES, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _use_all(uses: Sequence[Callable[[], object]]) -> None:
    """Call all functions; raise the first refusal at the end, and anything else at once."""
    refusals = []
    for use in uses:
        try:
            use()
        except WisecrowdError as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]


def list_uses(fitted: Any, folder: Path) -> dict[str, Callable[[], object]]:
    """Return everything that a saved method may offer, by name."""
    crowd, rows = _crowd(), _features()
    return {
        "repr": lambda: repr(fitted),
        "labels": lambda: fitted.labels_,
        "proba": lambda: fitted.proba_,
        "workers": lambda: fitted.workers_,
        "confusion": lambda: fitted.confusion_,
        "scores": lambda: fitted.scores_,
        "html": lambda: fitted._repr_html_(),
        "save": lambda: fitted.save(folder / "again"),
        "predict": lambda: fitted.predict(rows if hasattr(fitted, "feature_shape_") else crowd),
        "predict_proba": lambda: fitted.predict_proba(rows),
        "predict_worker_proba": lambda: fitted.predict_worker_proba(rows, ["w0", "nobody"]),
        "predict_votes": lambda: fitted.predict_worker_proba(),
        "fill": lambda: fitted.fill(),
        "stream": lambda: list(fitted.stream()),
        "start": lambda: wc.DawidSkene(max_iter=2).fit(crowd, start=fitted),
    }


@functools.cache
def _supported_uses(name: str) -> frozenset[str]:
    """Return the uses that the valid method has."""
    supported = set()
    with tempfile.TemporaryDirectory() as folder:
        _write(_model_files(name), Path(folder) / "state")
        for use, call in list_uses(load(Path(folder) / "state"), Path(folder)).items():
            with contextlib.suppress(Exception), warnings.catch_warnings():  # it does not have this use
                warnings.simplefilter("ignore")
                call()
                supported.add(use)
    return frozenset(supported)


def use_model(name: str, folder: Path) -> None:
    """Load a saved method and use everything that the valid one offers."""
    supported = _supported_uses(name)
    with _limited_memory():
        uses = list_uses(load(folder / "state"), folder)
        _use_all([call for use, call in uses.items() if use in supported])


def use_shards(folder: Path) -> None:
    """Open a folder of shards with and without verification, fit methods with both kernels, and load it."""
    with _limited_memory():
        _use_all([functools.partial(_use_shards, folder, verify=verify) for verify in (True, False)])


def _use_shards(folder: Path, *, verify: bool) -> None:
    crowd = open_shards(folder / "state", verify)

    def expect(*, compiled: bool) -> None:
        prior = np.full(crowd.n_classes, 1 / max(crowd.n_classes, 1))
        label_probs = np.full((len(crowd.pairs), crowd.n_classes), 0.5)
        sums = StreamEngine(crowd, compiled=compiled).expect(prior, label_probs)
        assert sums is None or np.isfinite(sums.tally).all(), "the tally is not finite"

    dawid_skene = wc.DawidSkene(max_iter=3)
    _use_all([
        lambda: wc.MajorityVote().fit(crowd).labels_,
        lambda: dawid_skene.fit(crowd).write_labels(folder / "labels.parquet") if crowd.has_workers else None,
        lambda: expect(compiled=True), lambda: expect(compiled=False), crowd.load, crowd.drop_workers, lambda: crowd.tasks,
        lambda: repr(crowd),
    ])  # fmt: skip


def use_checkpoint(kind: str, folder: Path) -> None:
    """Resume a fit from a checkpoint."""
    with _limited_memory():
        fitted = _fit_checkpointed(kind, folder / "state")
    assert np.isfinite(fitted.posterior_).all(), "the posterior is not finite"


def _make_targets() -> Iterator[Target]:
    for name in METHODS:
        yield Target(f"model-{name}", functools.partial(_prepare_model, name), functools.partial(use_model, name))
    for kind in ("plain", "weighted", "counts"):
        yield Target(f"shards-{kind}", functools.partial(_prepare_shards, kind), use_shards)
    for kind in ("em", "restarts", "gradient", "network", "network-em"):
        yield Target(
            f"checkpoint-{kind}", functools.partial(_prepare_checkpoint, kind), functools.partial(use_checkpoint, kind)
        )


def _prepare_model(name: str, folder: Path, rng: np.random.Generator) -> str:
    return _prepare(_model_files(name), _model_files("ds-fill"), seal_model, folder, rng)


def _prepare_shards(kind: str, folder: Path, rng: np.random.Generator) -> str:
    return _prepare(_shard_files(kind), _shard_files("plain"), seal_shards, folder, rng)


def _prepare_checkpoint(kind: str, folder: Path, rng: np.random.Generator) -> str:
    return _prepare(_checkpoint_files(kind), _checkpoint_files("em"), None, folder, rng)


TARGETS = tuple(_make_targets())


if __name__ == "__main__":
    runner.main(__spec__.name, [word.replace("--count", "--cases") for word in sys.argv[1:]])
