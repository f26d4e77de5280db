"""Service on PostgreSQL. The test starts a server on a socket in a temporary folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.service.coordinator import Coordinator
from wisecrowd.service.events import DeleteTasks, RegisterTasks, Upsert, VoteRecord
from wisecrowd.service.store import Store


def _program(name: str) -> str | None:
    beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(beside[-1]) if beside else None)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Return the URL of an empty database."""
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    initdb, pg_ctl = _program("initdb"), _program("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("there is no PostgreSQL here")
    # The server refuses to run as root, and Debian's package makes a user for it.
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "data"
        if as_user:
            if (
                shutil.which("setpriv") is None
                or subprocess.run(["id", "postgres"], capture_output=True, check=False).returncode
            ):
                pytest.skip("this is root, and there is no user postgres to run a server as")
            shutil.chown(folder, "postgres")

        def run(*command: str) -> None:
            subprocess.run([*as_user, *command], check=True, capture_output=True, cwd=folder)

        run(initdb, "-D", str(place), "-A", "trust", "-U", "me")
        settings = f"-k {folder} -c listen_addresses='' -c fsync=off"
        run(pg_ctl, "-D", str(place), "-o", settings, "-l", f"{folder}/log", "-w", "start")
        try:
            yield f"postgresql+psycopg://me@/postgres?host={folder}"
        finally:
            run(pg_ctl, "-D", str(place), "-m", "immediate", "stop")


def test_votes_are_stored_changed_and_deleted(url: str) -> None:
    store = Store(url)
    hostile = "a\tb\n'\"; DROP TABLE records; -- 😀 \u202e"
    first = Upsert("id:1", (VoteRecord(hostile, "t1", "ann", hostile, 12.5), VoteRecord("other", "t1", None, "x")))
    assert store.apply([first, RegisterTasks(hostile, ("t1", "t2"))]).outcomes == ["new", "new"]
    assert store.apply([first]).outcomes == ["unchanged"]
    assert store.apply([Upsert("id:1", (VoteRecord(hostile, "t1", "ann", "no"),))]).outcomes == ["changed"]
    with pytest.raises(InputError, match="another wisecrowd serve"):
        Store(url)
    store.close()
    again = Store(url)
    assert again.vocabularies[hostile].tasks.names == ["t1", "t2"]
    assert again.votes_on(0, [0, 1]) == {0: {0: 1}, 1: {}}
    assert again.apply([DeleteTasks("", ("t1",))]).outcomes == ["changed"]
    assert again.votes_on(0, [0]) == {0: {}}
    again.close()


def test_fit_equals_a_batch_fit(url: str, simulated: Any, votes: Any) -> None:
    coordinator = Coordinator(Store(url), wc.DawidSkene())
    events = [
        Upsert(f"id:{n}", (VoteRecord("fit", vote["task"], vote["worker"], vote["label"]),))
        for n, vote in enumerate(votes)
    ]
    coordinator.apply(events).result()
    question = coordinator.question("fit")
    assert coordinator.refit(question)
    with coordinator.lock:
        labels = {
            question.describe_task(task)["task"]: question.describe_task(task)["label"]
            for task in range(question.n_tasks)
        }
    assert labels == wc.DawidSkene().fit(simulated.crowd).labels_.to_dict()
    coordinator.close()
