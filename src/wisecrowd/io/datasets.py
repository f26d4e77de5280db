"""Datasets by name: votes together with truth, features and texts. Some can be downloaded.

Names refer to subfolders of the folders that ``WISECROWD_DATA`` lists and of the cache, which is the user's cache folder or
the folder that ``WISECROWD_CACHE`` names.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.rows import Duplicates
from wisecrowd.errors import DataWarning, InputError, MissingExtra, UsageError, preview, suggest_name
from wisecrowd.io.compressed_files import limit_unpacked
from wisecrowd.io.dataset_folder import ANNOTATIONS, FOLDER, TRUTH, write_dataset
from wisecrowd.io.problems import prefix_errors
from wisecrowd.io.tables.parquet import open_parquet
from wisecrowd.io.vote_source import VoteSource
from wisecrowd.io.vote_table import DUPLICATE_RULES, ReadOptions
from wisecrowd.utils.files import TemporaryFolder
from wisecrowd.utils.text import count_noun


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """Votes with the truth, features and texts of their tasks. All but the votes are indexed by task and optional.

    Parameters
    ----------
    name : str
        Name.
    crowd : Crowd
        Votes.
    truth : Series, optional
        True labels, also of tasks without votes, such as those of a test split.
    features : DataFrame, optional
        Features.
    splits : Series, optional
        Name of the split.
    texts : DataFrame, optional
        Texts.
    meta : mapping
        Description, such as source and licence.
    folder : Path, optional
        File or folder that the dataset was read from.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> Dataset(name="pets", crowd=crowd, truth=pd.Series({"t1": "cat"}))
    Dataset('pets', Crowd(2 votes: 1 task x 2 workers, 2 classes, 2.0 votes/task), truth of 1 task)
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
            parts.append(f"truth of {count_noun(len(self.truth), 'task')}")
        if self.features is not None:
            parts.append(count_noun(self.features.shape[1], "feature"))
        if self.splits is not None:
            parts.append("splits " + ", ".join(f"{name} {n:,}" for name, n in self.splits.value_counts().items()))
        if self.texts is not None:
            parts.append("texts")
        return f"Dataset({', '.join(parts)})"


def load_dataset(
    name_or_folder: str | os.PathLike[str],
    *,
    duplicates: Duplicates | None = None,
    max_unpacked: int | str | None = None,
) -> Dataset:
    """Load a dataset by name, or from a file or folder of any format.

    Parameters
    ----------
    name_or_folder : str or path-like
        Name or path.
    duplicates : {"error", "first", "last", "distinct", "keep"}, optional
        Rule for repeated votes of a worker on a task, as for :func:`wisecrowd.read`. Published datasets often contain them.
        Without it, the rule in the dataset's ``meta.json`` applies (``"duplicates": "keep"``), or else ``"distinct"``, the
        usual protocol, which drops exact repeats with a warning.
    max_unpacked : int or str, optional
        Size that a compressed file may unpack to, such as ``"16GB"`` (see :func:`wisecrowd.read`).

    Returns
    -------
    Dataset
        The dataset.

    Raises
    ------
    InputError
        If there is no such dataset.

    Examples
    --------
    >>> from wisecrowd.io.dataset_folder import write_dataset
    >>> write_dataset("my-pets", Crowd.from_triples([("t1", "ann", "cat")]), truth=pd.Series({"t1": "cat"}))
    >>> load_dataset("my-pets")
    Dataset('my-pets', Crowd(1 vote: 1 task x 1 worker, 1 class, 1.0 votes/task), truth of 1 task)
    """
    path = _locate(Path(name_or_folder))
    with limit_unpacked(max_unpacked):
        return _load(VoteSource.detect(path), duplicates)


def _load(source: VoteSource, duplicates: Duplicates | None) -> Dataset:
    path, reader = source.path, source.format.reader
    with prefix_errors(path):
        meta = {} if reader.read_meta is None else reader.read_meta(path)
        votes = source.read_table()
        rule = duplicates or _get_duplicate_rule(meta)
        crowd = votes.to_crowd(ReadOptions(duplicates=rule or "distinct"))
        read_truth = None if source.format.is_table else reader.read_truth
        truth = None if read_truth is None else read_truth(path, None, None)
        n_dropped = votes.table.num_rows - crowd.n_votes
        if n_dropped and rule is None:
            warnings.warn(
                f"{path.name}: dropped {count_noun(n_dropped, 'vote')} in which a worker repeats the same answer to a task; "
                "say duplicates='distinct' if that is right, or 'keep' to count them all",
                DataWarning,
                stacklevel=3,
            )
        return Dataset(
            name=str(meta.get("name") or (path.name if path.is_dir() else path.name.partition(".")[0])),
            crowd=crowd,
            truth=None if truth is None else truth["truth"],
            splits=truth["split"] if truth is not None and "split" in truth else None,
            features=None if reader.read_features is None else reader.read_features(path),
            texts=None if reader.read_texts is None else reader.read_texts(path),
            meta=MappingProxyType(meta),
            folder=path,
        )


def list_datasets() -> pd.DataFrame:
    """List the datasets that can be loaded by name and those that can be downloaded. The votes are not read.

    Returns
    -------
    DataFrame
        Counts, path and availability, indexed by name.

    Examples
    --------
    >>> list_datasets().loc["labelme", ["tasks", "workers", "votes", "classes"]].tolist()
    [1000, 59, 2547, 8]
    """
    rows = {name: _build_row(upstream.meta, None) for name, upstream in _UPSTREAM.items()}
    rows |= {name: _build_row(_read_summary(folder), folder) for name, folder in find_dataset_folders().items()}
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=[*_COUNTS, "features", "where", "downloaded"])
    return frame.sort_index().rename_axis("name").astype(dict.fromkeys(_COUNTS, "Int64"))


def fetch_dataset(name: str, *, cache: str | os.PathLike[str] | None = None, base_url: str | None = None) -> Dataset:
    """Load a dataset, and download it into the cache first if necessary.

    Files are downloaded from where their authors published them, at a fixed commit, and checked against their SHA-256.

    Parameters
    ----------
    name : str
        Name.
    cache : path-like, optional
        Folder of the cache. By default `get_cache_folder`.
    base_url : str, optional
        Another address of the same files.

    Returns
    -------
    Dataset
        The dataset.

    Raises
    ------
    UsageError
        If no dataset of that name can be downloaded.

    Examples
    --------
    >>> fetch_dataset("label-me")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: no dataset 'label-me' can be downloaded; there are 'labelme'. Did you mean 'labelme'?
    """
    if name not in _UPSTREAM:
        names = ", ".join(map(repr, _UPSTREAM))
        raise UsageError(f"no dataset {name!r} can be downloaded; there are {names}.{suggest_name(name, _UPSTREAM)}")
    folder = Path(cache or get_cache_folder()) / name
    if not FOLDER.detect(folder):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"the cache folder {folder.parent} cannot be created: {error}; set WISECROWD_CACHE to another folder"
            ) from None
        with TemporaryFolder(folder.parent, name) as downloads:
            _download(_UPSTREAM[name], downloads, base_url)
            _UPSTREAM[name].build(downloads, folder)
    return load_dataset(folder)


def get_cache_folder() -> Path:
    """Return the folder of downloaded datasets: ``WISECROWD_CACHE``, or the user's cache folder.

    Returns
    -------
    Path
        Absolute path.

    Examples
    --------
    >>> get_cache_folder().is_absolute()
    True
    """
    if folder := os.environ.get("WISECROWD_CACHE"):
        return Path(folder).absolute()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "wisecrowd" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "wisecrowd"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wisecrowd"


def find_dataset_folders() -> dict[str, Path]:
    """Return the folders of the datasets that can be loaded by name. No file is read.

    Returns
    -------
    dict of str to Path
        Folder by name. Earlier folders of ``WISECROWD_DATA`` take precedence over later ones, and all over the cache.

    Examples
    --------
    >>> all(folder.name == name for name, folder in find_dataset_folders().items())
    True
    """
    roots = [Path(part) for part in os.environ.get("WISECROWD_DATA", "").split(os.pathsep) if part]
    roots = [root for root in (*roots, get_cache_folder()) if root.is_dir()]
    return {
        folder.name: folder for root in reversed(roots) for folder in sorted(root.iterdir()) if FOLDER.detect(folder)
    }


def _locate(path: Path) -> Path:
    """Return the path of a dataset, which may be given by name."""
    is_name = len(path.parts) == 1
    if path.exists() and (not is_name or path.is_file() or FOLDER.detect(path)):
        return path
    stored = find_dataset_folders()
    if is_name and path.name in stored:
        return stored[path.name]
    if path.exists() or not is_name:
        return path  # format detection reports what is wrong with it
    name = path.name
    if name in _UPSTREAM:
        raise InputError(f"dataset {name!r} is not on this machine yet; download it with fetch_dataset({name!r})")
    raise InputError(
        f"there is no dataset {name!r}; list_datasets() shows all of them, and WISECROWD_DATA names the folders to search."
        f"{suggest_name(name, [*stored, *_UPSTREAM])}"
    )


def _read_summary(folder: Path) -> Mapping[str, Any]:
    """Read the description of a folder without its votes. Loading reports damage."""
    try:
        meta = {} if FOLDER.read_meta is None else FOLDER.read_meta(folder)
    except InputError:
        meta = {}
    return {"n_votes": count_rows(folder / ANNOTATIONS), "n_gold": count_rows(folder / TRUTH)} | meta


def count_rows(file: Path) -> int | None:
    """Return the number of rows of a Parquet file. The rows are not read.

    Parameters
    ----------
    file : Path
        File.

    Returns
    -------
    int or None
        None if the file is missing or damaged.

    Examples
    --------
    >>> count_rows(Path("missing.parquet")) is None
    True
    """
    if not file.is_file():
        return None
    try:
        with open_parquet(file) as parquet:
            return int(parquet.metadata.num_rows)
    except InputError:
        return None


#: Columns of `list_datasets` with counts.
_COUNTS = ["tasks", "workers", "votes", "classes", "gold"]


def _build_row(meta: Mapping[str, Any], folder: Path | None) -> list[Any]:
    counts = [_get_count(meta, f"n_{noun}") for noun in _COUNTS[:-1]]
    gold = _get_count(meta, "n_gold_with_annotations" if "n_gold_with_annotations" in meta else "n_gold")
    features = "features" in meta if folder is None else any(folder.glob("features.*"))
    return [*counts, gold, features, None if folder is None else str(folder), folder is not None]


def _get_count(meta: Mapping[str, Any], key: str) -> int | None:
    """Return a count of the description, None if it is not one. The description may hold anything."""
    count = meta.get(key)
    return count if type(count) is int and 0 <= count < 2**63 else None


def _get_duplicate_rule(meta: Mapping[str, Any]) -> Duplicates | None:
    rule = meta.get("duplicates")
    if rule is not None and rule not in DUPLICATE_RULES:
        raise InputError(
            f"'duplicates' in meta.json should be one of {', '.join(DUPLICATE_RULES)}; got {preview([rule])}"
        )
    return rule


def _download(upstream: _Upstream, folder: Path, base_url: str | None) -> None:
    try:
        import pooch
    except ImportError:
        raise MissingExtra("datasets", "downloads") from None

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")  # pooch announces every file
    try:
        for file, (sha256, size) in upstream.files.items():
            url = f"{(base_url or upstream.base_url).rstrip('/')}/{file}"
            try:
                pooch.retrieve(url, known_hash=f"sha256:{sha256}", fname=file, path=folder)
            except ValueError:
                published = f"{size:,} bytes with the SHA-256 {sha256[:12]}…"
                raise InputError(f"{url} differs from the published file, {published}; nothing was stored") from None
            except OSError as error:
                raise InputError(f"cannot download {url}: {error}; nothing was stored, so try again") from None
    finally:
        logger.setLevel(level)


@dataclass(frozen=True, kw_only=True)
class _Upstream:
    """Files as their authors published them, and the function that builds a dataset folder from them."""

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
        truth = np.loadtxt(files / f"LabelMe_Z_{split}.txt", dtype=np.int64)
        tasks = [f"{split}_{position:04d}" for position in range(len(truth))]
        parts.append(pd.DataFrame({"truth": truth.astype(str), "split": split}, index=tasks))
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
