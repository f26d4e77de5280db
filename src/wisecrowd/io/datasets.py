"""Datasets by name: votes, truth, features and texts that belong together; some can be downloaded.

A name is looked up in the folders that ``WISECROWD_DATA`` lists and in the cache, which is the user's cache folder
unless ``WISECROWD_CACHE`` names another.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.rows import Duplicates
from wisecrowd.errors import DataWarning, InputError, MissingExtra, UsageError, did_you_mean
from wisecrowd.io.dataset_folder import ANNOTATIONS, FOLDER, TRUTH, write_dataset
from wisecrowd.io.formats import Options, about, find_format


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """Votes and what is known beside them; everything but the votes is indexed by task, and may be missing.

    ``truth`` also has tasks without votes, such as those of a test split.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> Dataset(name="pets", crowd=crowd, truth=pd.Series({"t1": "cat"}))
    Dataset('pets', Crowd(2 labels: 1 tasks x 2 workers, 2 classes, 2.0 labels/task), truth of 1 tasks)
    """

    name: str
    crowd: Crowd
    truth: pd.Series[Any] | None = None
    features: pd.DataFrame | None = None
    splits: pd.Series[Any] | None = None
    texts: pd.DataFrame | None = None
    meta: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    folder: Path | None = None

    def __repr__(self) -> str:
        parts = [repr(self.name), repr(self.crowd)]
        if self.truth is not None:
            parts.append(f"truth of {len(self.truth):,} tasks")
        if self.features is not None:
            parts.append(f"{self.features.shape[1]:,} features")
        if self.splits is not None:
            parts.append("splits " + ", ".join(f"{name} {n:,}" for name, n in self.splits.value_counts().items()))
        if self.texts is not None:
            parts.append("texts")
        return f"Dataset({', '.join(parts)})"


def load_dataset(name_or_folder: str | os.PathLike[str], *, duplicates: Duplicates | None = None) -> Dataset:
    """Load a dataset by name, or from a folder or file of any format that wisecrowd reads.

    Datasets as published often hold a worker's repeated votes on one task. ``duplicates`` says what to do about them, as
    for :func:`wisecrowd.read`; without it the dataset's own ``meta.json`` may say (``"duplicates": "keep"``), and
    otherwise exact repeats are dropped and different answers all kept (``"distinct"``, the usual protocol), with a warning.

    >>> from wisecrowd.io.dataset_folder import write_dataset
    >>> write_dataset("my-pets", Crowd.from_triples([("t1", "ann", "cat")]), truth=pd.Series({"t1": "cat"}))
    >>> load_dataset("my-pets")
    Dataset('my-pets', Crowd(1 labels: 1 tasks x 1 workers, 1 classes, 1.0 labels/task), truth of 1 tasks)
    """
    path = _locate(Path(name_or_folder))
    form = find_format(path)
    with about(path):
        meta = {} if form.meta is None else form.meta(path)
        votes = form.votes(path, Options())
        wanted = duplicates or meta.get("duplicates")
        crowd = votes.crowd(Options(duplicates=wanted or "distinct"))
        known = None if form.truth is None or form.is_table else form.truth(path, None, None)
        dropped = votes.table.num_rows - crowd.n_votes
        if dropped and wanted is None:
            warnings.warn(
                f"{path.name}: {dropped:,} votes repeat the same worker's same answer to the same task and were dropped; "
                "say duplicates='distinct' if that is right, or 'keep' to count them all",
                DataWarning,
                stacklevel=2,
            )
        return Dataset(
            name=str(meta.get("name") or (path.name if path.is_dir() else path.name.partition(".")[0])),
            crowd=crowd,
            truth=None if known is None else known["truth"],
            splits=known["split"] if known is not None and "split" in known else None,
            features=None if form.features is None else form.features(path),
            texts=None if form.texts is None else form.texts(path),
            meta=MappingProxyType(meta),
            folder=path,
        )


def list_datasets() -> pd.DataFrame:
    """Every dataset that can be loaded by name, and those that can be downloaded; the votes are not read.

    >>> list_datasets().loc["labelme", ["tasks", "workers", "labels", "classes"]].tolist()
    [1000, 59, 2547, 8]
    """
    rows = {name: _row(upstream.meta, None) for name, upstream in _UPSTREAM.items()}
    rows |= {folder.name: _row(_told(folder), folder) for folder in reversed(list(_stored()))}
    counts = ["tasks", "workers", "labels", "classes", "gold"]
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=[*counts, "features", "where", "downloaded"])
    return frame.sort_index().rename_axis("name").astype(dict.fromkeys(counts, "Int64"))


def fetch_dataset(name: str, *, cache: str | os.PathLike[str] | None = None, base_url: str | None = None) -> Dataset:
    """Download a dataset into the cache, unless it is there already, and load it.

    The files come from where their authors published them, at one commit, and are checked against their SHA-256.
    ``base_url`` is another place to take the same files from.

    >>> fetch_dataset("label-me")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: no dataset 'label-me' can be downloaded; there are 'labelme'. Did you mean 'labelme'?
    """
    if name not in _UPSTREAM:
        known = ", ".join(map(repr, _UPSTREAM))
        raise UsageError(f"no dataset {name!r} can be downloaded; there are {known}.{did_you_mean(name, _UPSTREAM)}")
    folder = Path(cache or cache_folder()) / name
    if not FOLDER.sniff(folder):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"no dataset can be kept in {folder.parent}: {error}; WISECROWD_CACHE names another"
            ) from None
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder.parent) as downloads:
            _download(_UPSTREAM[name], Path(downloads), base_url)
            _UPSTREAM[name].build(Path(downloads), folder)
    return load_dataset(folder)


def cache_folder() -> Path:
    """Where downloaded datasets go: ``WISECROWD_CACHE``, or the user's cache folder.

    >>> cache_folder().is_absolute()
    True
    """
    if chosen := os.environ.get("WISECROWD_CACHE"):
        return Path(chosen).absolute()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "wisecrowd" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "wisecrowd"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wisecrowd"


def _stored() -> Iterator[Path]:
    """Dataset folders that have a name, those that win first."""
    roots = [Path(part) for part in os.environ.get("WISECROWD_DATA", "").split(os.pathsep) if part]
    for root in [*roots, cache_folder()]:
        if root.is_dir():
            yield from (folder for folder in sorted(root.iterdir()) if FOLDER.sniff(folder))


def _locate(wanted: Path) -> Path:
    is_name = len(wanted.parts) == 1
    if wanted.exists() and (not is_name or wanted.is_file() or FOLDER.sniff(wanted)):
        return wanted
    stored = {folder.name: folder for folder in reversed(list(_stored()))}
    if is_name and wanted.name in stored:
        return stored[wanted.name]
    if wanted.exists() or not is_name:
        return wanted  # and let the formats say what is wrong with it
    name = wanted.name
    if name in _UPSTREAM:
        raise InputError(f"dataset {name!r} is not on this machine yet; download it with fetch_dataset({name!r})")
    raise InputError(
        f"there is no dataset {name!r}; list_datasets() shows those there are, and WISECROWD_DATA names the folders to "
        f"look in.{did_you_mean(name, [*stored, *_UPSTREAM])}"
    )


def _told(folder: Path) -> Mapping[str, Any]:
    """What a folder says about itself, without reading its votes; damage is for loading to report."""
    try:
        meta = {} if FOLDER.meta is None else FOLDER.meta(folder)
    except InputError:
        meta = {}
    return {"n_votes": _count(folder / ANNOTATIONS), "n_gold": _count(folder / TRUTH)} | meta


def _count(file: Path) -> int | None:
    try:
        return int(pq.read_metadata(file).num_rows) if file.is_file() else None
    except (pa.ArrowException, OSError):
        return None


def _row(meta: Mapping[str, Any], folder: Path | None) -> list[Any]:
    counts = [meta.get(f"n_{what}") for what in ("tasks", "workers", "labels", "classes")]
    gold = meta.get("n_gold_with_annotations", meta.get("n_gold"))
    features = "features" in meta if folder is None else any(folder.glob("features.*"))
    return [*counts, gold, features, None if folder is None else str(folder), folder is not None]


def _download(upstream: _Upstream, folder: Path, base_url: str | None) -> None:
    try:
        import pooch
    except ImportError:
        raise MissingExtra("datasets", "downloads") from None

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")  # it would announce every file
    try:
        for file, (sha256, size) in upstream.files.items():
            url = f"{(base_url or upstream.base_url).rstrip('/')}/{file}"
            try:
                pooch.retrieve(url, known_hash=f"sha256:{sha256}", fname=file, path=folder)
            except ValueError:
                published = f"{size:,} bytes with the SHA-256 {sha256[:12]}…"
                raise InputError(f"{url} is not the file that was published, {published}; nothing was kept") from None
            except OSError as error:
                raise InputError(f"cannot download {url}: {error}; nothing was kept, so just try again") from None
    finally:
        logger.setLevel(level)


@dataclass(frozen=True, kw_only=True)
class _Upstream:
    """Files as their authors published them, and how they become a dataset folder."""

    base_url: str
    files: Mapping[str, tuple[str, int]]  # name -> SHA-256, bytes
    meta: Mapping[str, Any]
    build: Callable[[Path, Path], None]


def _build_labelme(files: Path, folder: Path) -> None:
    answers = np.loadtxt(files / "answers.txt", dtype=np.int64)
    task, worker = np.nonzero(answers >= 0)
    votes = pd.DataFrame({"task": task, "worker": worker, "label": answers[task, worker]})
    votes = votes.assign(
        task="train_" + votes["task"].astype(str).str.zfill(4), worker="w" + votes["worker"].astype(str).str.zfill(2)
    )
    parts, features = [], []
    for split in ("train", "valid", "test"):
        known = np.loadtxt(files / f"LabelMe_Z_{split}.txt", dtype=np.int64)
        tasks = [f"{split}_{place:04d}" for place in range(len(known))]
        parts.append(pd.DataFrame({"truth": known.astype(str), "split": split}, index=tasks))
        features.append(np.load(files / f"LabelMe_VGG_avg_{split}.npy", allow_pickle=False))
    frame = pd.concat(parts)
    write_dataset(
        folder,
        Crowd.from_frame(votes.astype({"label": str})),
        truth=frame["truth"],
        splits=frame["split"],
        features=pd.DataFrame(np.concatenate(features), index=frame.index),
        meta=dict(_UPSTREAM["labelme"].meta),
    )


_UPSTREAM = {
    "labelme": _Upstream(
        base_url="https://raw.githubusercontent.com/FMena14/MixtureofGroups/11a47fb5ca6f518f931e004ae56d2581932881bb/LabelMe",
        files={
            "answers.txt": ("7d1945e639cc2bf4de40338eca1be9c8a6f0402da63f73a79b71d98e07e91897", 228_453),
            "LabelMe_Z_train.txt": ("229556bdc5da327dd7d4e4154ba180969091c83f43cf8cbee3727131c5a062f6", 2_000),
            "LabelMe_Z_valid.txt": ("40aba43f903a539b38243c411e214da1f8c696cc47aa59811cc3388cc6899892", 1_000),
            "LabelMe_Z_test.txt": ("6d508b638d41fa84b2628615270456df96a49dce18054d201ac6261b03ea77bc", 2_376),
            "LabelMe_VGG_avg_train.npy": ("0ddfbcbd722aab70e81525a459cc37d47c1d344322b401ee35a3e9b158a209e8", 2_048_128),
            "LabelMe_VGG_avg_valid.npy": ("cb80ce99ef9fc80c666e6b9c43259ee0aac4e0cf82f8ac654b8bb309fb28953d", 1_024_128),
            "LabelMe_VGG_avg_test.npy": ("af407538f702f98e775f233652152cdcb58583c9d4668492308151c126ce7873", 2_433_152),
        },
        meta={
            "name": "labelme",
            "n_tasks": 1000,
            "n_workers": 59,
            "n_votes": 2547,
            "n_classes": 8,
            "n_gold": 2688,
            "n_gold_with_annotations": 1000,
            "features": "VGG-16, global average pooling of the last convolution, 512 numbers per image",
            "class_names": [
                "highway", "insidecity", "tallbuilding", "street", "forest", "coast", "mountain", "opencountry",
            ],
            "source": "https://github.com/FMena14/MixtureofGroups, LabelMe/, commit 11a47fb5ca6f518f931e004ae56d2581932881bb",
            "citation": "Rodrigues, Lourenço, Ribeiro, Pereira (2017) Learning supervised topic models for classification "
            "and regression from crowds, IEEE TPAMI; Rodrigues, Pereira (2018) Deep learning from crowds, AAAI. "
            "Images: Russell, Torralba, Murphy, Freeman (2008) LabelMe, IJCV.",
            "licence": "not stated",
        },
        build=_build_labelme,
    ),
}  # fmt: skip
