from __future__ import annotations

import functools
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeAlias

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.errors import DataWarning, InputError, MissingExtra, UsageError
from wisecrowd.io import datasets
from wisecrowd.io.dataset_folder import write_dataset

CROWD = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
REPEATED = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t1", "ann", "cat"), ("t1", "ann", "dog")], duplicates="keep")


Serve: TypeAlias = Callable[[Path], str]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing that lies on this machine may matter here."""
    monkeypatch.delenv("WISECROWD_DATA", raising=False)
    monkeypatch.setenv("WISECROWD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


# ---------------------------------------------------------------------- by name


def test_names_are_looked_up_in_all_folders(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WISECROWD_DATA", f"{tmp_path / 'one'}{os.pathsep}{tmp_path / 'two'}")
    write_dataset(tmp_path / "two" / "pets", CROWD)
    write_dataset(cache / "cars", CROWD)
    assert wc.load_dataset("pets").folder == tmp_path / "two" / "pets"
    assert wc.load_dataset("cars").folder == cache / "cars"


def test_the_first_folder_wins(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WISECROWD_DATA", str(tmp_path / "data"))
    for folder in (cache, tmp_path / "data"):
        write_dataset(folder / "pets", CROWD)
    assert wc.load_dataset("pets").folder == tmp_path / "data" / "pets"
    assert wc.list_datasets().loc["pets", "where"] == str(tmp_path / "data" / "pets")


def test_a_folder_here_that_is_no_dataset_does_not_hide_a_name(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_dataset(cache / "pets", CROWD)
    (tmp_path / "pets").mkdir()
    monkeypatch.chdir(tmp_path)
    assert wc.load_dataset("pets").folder == cache / "pets"
    write_dataset(tmp_path / "pets", CROWD)
    assert wc.load_dataset("pets").folder == Path("pets")


def test_an_unknown_name(cache: Path) -> None:
    write_dataset(cache / "pets", CROWD)
    with pytest.raises(
        InputError, match=r"there is no dataset 'pet'; list_datasets\(\).*WISECROWD_DATA.*Did you mean 'pets'"
    ):
        wc.load_dataset("pet")


def test_a_name_that_can_be_downloaded() -> None:
    with pytest.raises(InputError, match=r"download it with fetch_dataset\('labelme'\)"):
        wc.load_dataset("labelme")


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file or folder"):
        wc.load_dataset(tmp_path / "pets")


def test_a_lone_table_is_a_dataset_too(tmp_path: Path) -> None:
    wc.write(CROWD, tmp_path / "pets.csv")
    dataset = wc.load_dataset(tmp_path / "pets.csv")
    assert (dataset.name, dataset.crowd, dataset.truth) == ("pets", CROWD, None)


def test_repr() -> None:
    index = ["t1", "t9"]
    dataset = datasets.Dataset(
        name="pets",
        crowd=CROWD,
        truth=pd.Series(["cat", "dog"], index=index),
        splits=pd.Series(["train", "test"], index=index),
        features=pd.DataFrame([[1, 2], [3, 4]], index=index),
        texts=pd.DataFrame({"text": ["a", "b"]}, index=index),
    )
    assert repr(dataset) == (
        "Dataset('pets', Crowd(2 votes: 1 task x 2 workers, 2 classes, 2.0 votes/task), truth of 2 tasks, 2 features, "
        "splits train 1, test 1, texts)"
    )


# ---------------------------------------------------------------------- repeated votes


def test_repeats_are_dropped_with_a_warning(tmp_path: Path) -> None:
    write_dataset(tmp_path / "d", REPEATED)
    with pytest.warns(DataWarning, match="d: dropped 1 vote in which .* say duplicates='distinct'"):
        dataset = wc.load_dataset(tmp_path / "d")
    assert dataset.crowd.label.tolist() == [0, 1]


@pytest.mark.parametrize(("duplicates", "count"), [("keep", 3), ("distinct", 2), ("first", 1), ("last", 1)])
def test_repeats_by_choice(tmp_path: Path, duplicates: str, count: int) -> None:
    write_dataset(tmp_path / "d", REPEATED)
    assert wc.load_dataset(tmp_path / "d", duplicates=duplicates).crowd.n_votes == count  # type: ignore[arg-type]
    with pytest.raises(InputError, match="d: 2 rows repeat"):
        wc.load_dataset(tmp_path / "d", duplicates="error")


def test_a_dataset_may_say_itself(tmp_path: Path) -> None:
    write_dataset(tmp_path / "d", REPEATED, meta={"duplicates": "keep"})
    assert wc.load_dataset(tmp_path / "d").crowd.n_votes == 3
    assert wc.load_dataset(tmp_path / "d", duplicates="distinct").crowd.n_votes == 2


def test_different_answers_are_no_repeats(tmp_path: Path) -> None:
    write_dataset(tmp_path / "d", wc.Crowd.from_triples([("t", "a", "x"), ("t", "a", "y")], duplicates="keep"))
    assert wc.load_dataset(tmp_path / "d").crowd.n_votes == 2


# ---------------------------------------------------------------------- the list


def test_list(cache: Path) -> None:
    write_dataset(
        cache / "pets", CROWD, truth=pd.Series({"t1": "cat", "t9": "dog"}), features=pd.DataFrame([[1.0]], index=["t1"])
    )
    (cache / "no dataset").mkdir()
    frame = wc.list_datasets()
    assert frame.index.tolist() == ["labelme", "pets"]
    assert frame.loc["pets"].tolist() == [1, 2, 2, 2, 1, True, str(cache / "pets"), True]
    assert frame.loc["labelme", ["tasks", "downloaded"]].tolist() == [1000, False]


def test_list_without_meta_counts_what_is_cheap(cache: Path) -> None:
    write_dataset(cache / "pets", CROWD, truth=pd.Series({"t1": "cat"}))
    for content in (None, "{oops"):
        (cache / "pets" / "meta.json").unlink()
        if content is not None:
            (cache / "pets" / "meta.json").write_text(content)
        row = wc.list_datasets().loc["pets"]
        assert row[["votes", "gold"]].tolist() == [2, 1]
        assert row[["tasks", "workers", "classes"]].isna().all()
        (cache / "pets" / "meta.json").touch()


def test_list_survives_damage(cache: Path) -> None:
    write_dataset(cache / "pets", CROWD)
    (cache / "pets" / "annotations.parquet").write_bytes(b"rubbish")
    (cache / "pets" / "meta.json").unlink()
    assert wc.list_datasets().loc["pets", ["votes"]].isna().all()


@pytest.mark.parametrize(
    ("platform", "environment", "folder"),
    [
        ("linux", {"XDG_CACHE_HOME": "xdg"}, Path("xdg", "wisecrowd")),
        ("linux", {}, Path.home() / ".cache" / "wisecrowd"),
        ("darwin", {}, Path.home() / "Library" / "Caches" / "wisecrowd"),
        ("win32", {"LOCALAPPDATA": "local"}, Path("local", "wisecrowd", "Cache")),
    ],
)
def test_cache_folder(
    platform: str, environment: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WISECROWD_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert datasets.get_cache_folder() == folder


# ---------------------------------------------------------------------- downloads


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve a folder on this machine; returns the address."""
    servers = []

    def start(folder: Path) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.data
def test_labelme(raw_folder: Path, data_folder: Path, cache: Path, serve: Serve) -> None:
    fetched = wc.fetch_dataset("labelme", base_url=f"{serve(raw_folder)}/labelme/")
    known = wc.load_dataset(data_folder / "labelme")
    assert fetched.folder == cache / "labelme"
    assert fetched.crowd == known.crowd
    pd.testing.assert_series_equal(fetched.truth, known.truth)
    pd.testing.assert_series_equal(fetched.splits, known.splits)
    pd.testing.assert_frame_equal(fetched.features, known.features)
    assert fetched.meta["class_names"] == known.meta["class_names"]
    assert [entry.name for entry in cache.iterdir()] == ["labelme"]
    assert wc.load_dataset("labelme").crowd == known.crowd
    # The second time nothing is downloaded.
    assert wc.fetch_dataset("labelme", base_url="http://127.0.0.1:9").crowd == known.crowd


def test_a_changed_file_is_refused(tmp_path: Path, cache: Path, serve: Serve) -> None:
    for name in datasets._UPSTREAM["labelme"].files:
        (tmp_path / "raw" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "raw" / name).write_text("not what it was\n")
    with pytest.raises(InputError, match=r"answers\.txt differs from the published file.*nothing was stored"):
        wc.fetch_dataset("labelme", base_url=serve(tmp_path / "raw"))
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="set WISECROWD_CACHE to another folder"):
        wc.fetch_dataset("labelme", cache=tmp_path / "file")


def test_a_missing_file_is_reported(tmp_path: Path, cache: Path, serve: Serve) -> None:
    with pytest.raises(InputError, match=r"cannot download .*answers\.txt.*404"):
        wc.fetch_dataset("labelme", base_url=serve(tmp_path))
    assert list(cache.iterdir()) == []


def test_a_failed_conversion_leaves_nothing(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_files: Path, folder: Path) -> None:
        write_dataset(folder, CROWD, meta={"bad": object()})

    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "file").write_text("content")
    files = {"file": (hashlib.sha256(b"content").hexdigest(), 7)}
    monkeypatch.setitem(datasets._UPSTREAM, "labelme", replace(datasets._UPSTREAM["labelme"], files=files, build=fail))
    with pytest.raises(TypeError):
        wc.fetch_dataset("labelme", cache=tmp_path / "elsewhere", base_url=serve(tmp_path / "raw"))
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_downloads_need_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtra, match=r'pip install "wisecrowd\[datasets\]"'):
        wc.fetch_dataset("labelme")


def test_an_unknown_download() -> None:
    with pytest.raises(UsageError, match="no dataset 'pets' can be downloaded; there are 'labelme'"):
        wc.fetch_dataset("pets")


# ---------------------------------------------------------------------- real data


@pytest.mark.data
def test_every_real_dataset_is_listed_as_it_is(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WISECROWD_DATA", str(data_folder))
    frame = wc.list_datasets()
    small = frame[frame["votes"] < 20_000]
    assert len(small) > 5
    for name, row in small.iterrows():
        crowd = wc.load_dataset(str(name), duplicates="keep").crowd
        assert (crowd.n_tasks, crowd.n_workers, crowd.n_votes) == (row["tasks"], row["workers"], row["votes"])
        assert crowd.is_numeric if pd.isna(row["classes"]) else crowd.n_classes == row["classes"]


@pytest.mark.data
@pytest.mark.parametrize(("name", "count"), [("weather_amt", 6025), ("zencrowd_all", 20372), ("zencrowd_in", 10626)])
def test_dropping_exact_repeats_gives_the_published_counts(data_folder: Path, name: str, count: int) -> None:
    assert wc.load_dataset(data_folder / name, duplicates="distinct").crowd.n_votes == count
