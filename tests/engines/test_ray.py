"""The cluster engine: it gives what the crowd in memory gives, whatever is lost on the way."""

from __future__ import annotations

import gc
import os
import pickle
import re
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.engines import ray as ray_engine
from wisecrowd.engines.base import compute_chunk_posterior, expect_chunk, tally_chunk
from wisecrowd.engines.local import LocalEngine
from wisecrowd.engines.ray import ClusterLost, RayEngine
from wisecrowd.errors import InputError, MissingExtra, UsageError

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")


@pytest.fixture(scope="module")
def some(case: Any) -> Any:
    return case(0, weighted=True, clamped=True)


@pytest.fixture(scope="module")
def engine(cluster: Any, some: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayEngine]:  # noqa: ARG001
    """Three actors with several shards each."""
    made = RayEngine(*some.sharded(tmp_path_factory.mktemp("crowd") / "shards", votes=40), actors=3)
    yield made
    made.close()


def same_bits(one: Any, other: Any) -> bool:
    return one.log_likelihood == other.log_likelihood and one.tally.tobytes() == other.tally.tobytes()


# ---------------------------------------------------------------------- the same sums


@needs_ray
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(("in_shards", "kind"), [(False, {"weighted": True, "clamped": True}), (True, {"workers": 0})])
def test_it_gives_what_the_crowd_in_memory_gives(
    case: Any, tmp_path: Path, in_shards: bool, kind: dict[str, Any]
) -> None:
    some = case(7, **kind)
    engine = RayEngine(*some.sharded(tmp_path / "crowd"), actors=2) if in_shards else RayEngine(*some[:2])
    some.check(engine)
    tasks = [chunk for tasks in engine.map(lambda chunk: tuple(chunk.crowd.tasks)) for chunk in tasks]
    assert tasks == some.crowd.tasks.tolist()
    engine.close()
    with pytest.raises(UsageError, match="closed"):
        engine.expect(*some.given)


@needs_ray
def test_what_comes_back_can_be_written_to(engine: RayEngine, some: Any) -> None:
    table = engine.expect(*some.given).tally
    table += 1
    for part in engine.map(compute_chunk_posterior, *some.given):
        part += 1


@needs_ray
def test_pieces_know_their_place(engine: RayEngine) -> None:
    places = list(engine.map(lambda chunk: (chunk.number, chunk.n_chunks)))
    assert len(places) > 6
    assert places == [(number, len(places)) for number in range(len(places))]


@needs_ray
def test_two_engines_on_fewer_cores_than_actors(engine: RayEngine, some: Any) -> None:
    other = RayEngine(some.crowd, some.gold, address="auto", actors=1)
    both = zip(
        engine.map(compute_chunk_posterior, *some.given), other.map(compute_chunk_posterior, *some.given), strict=False
    )
    assert all(len(one) and len(two) for one, two in both)
    assert engine.expect(*some.given).log_likelihood == pytest.approx(other.expect(*some.given).log_likelihood)
    other.close()
    some.check(engine)  # the cluster was there before the other, and is there after it


@needs_ray
def test_few_rows_of_a_large_table_are_sent_alone(cluster: Any) -> None:
    rng = np.random.default_rng(3)
    votes = 4000  # every worker votes on neighbouring tasks, so that an actor sees few of them
    task = np.sort(rng.integers(800, size=votes))
    worker = np.minimum(task // 2 + rng.integers(3, size=votes), 399)
    crowd = Crowd.from_codes(task, worker, rng.integers(3, size=votes), tasks=range(800), workers=range(400), classes=list("abc"),
                  duplicates="keep")  # fmt: skip
    prior, label_probs = np.full(3, 1 / 3), rng.uniform(0.1, 1, size=(len(crowd.pairs), 3))
    engine, wanted = RayEngine(crowd, actors=3), LocalEngine(crowd).expect(prior, label_probs)
    np.testing.assert_allclose(engine.expect(prior, label_probs).tally, wanted.tally, rtol=1e-12)
    sent = cluster.get(engine._actors[2].sum.remote([engine._store_call(expect_chunk, (prior, label_probs))], []))
    assert len(sent.rows) < 0.4 * len(crowd.pairs)
    assert len(pickle.dumps(sent)) < 0.5 * wanted.tally.nbytes
    # A table of something else by pairs, in which no row is zero, is sent whole.
    ones = engine.sum(lambda chunk: np.ones(len(chunk.crowd.pairs)))
    assert ones.tolist() == [3.0] * len(crowd.pairs)
    engine.close()


# ---------------------------------------------------------------------- losses


@needs_ray
def test_an_actor_lost_between_calls(cluster: Any, engine: RayEngine, some: Any) -> None:
    first = engine.expect(*some.given)
    assert same_bits(engine.expect(*some.given), first)
    for place in (0, 2):
        cluster.kill(engine._actors[place])
        assert same_bits(engine.expect(*some.given), first)


@needs_ray
@pytest.mark.parametrize("number", [0, 1])
def test_an_actor_lost_at_work(engine: RayEngine, some: Any, tmp_path: Path, number: int) -> None:
    wanted, marks = engine.expect(*some.given), str(tmp_path / "lost")

    def work(chunk: Any, prior: Any, label_probs: Any) -> Any:
        if chunk.number == number and not os.path.exists(marks):
            os.close(os.open(marks, os.O_CREAT))
            os._exit(1)
        return expect_chunk(chunk, prior, label_probs)

    assert engine.sum(work, *some.given).tally == pytest.approx(wanted.tally)
    assert Path(marks).exists()


@needs_ray
def test_an_actor_lost_while_pieces_are_looked_at(cluster: Any, engine: RayEngine, some: Any) -> None:
    wanted = list(engine.map(compute_chunk_posterior, *some.given))
    found = []
    for number, part in enumerate(engine.map(compute_chunk_posterior, *some.given)):
        found.append(part)
        if number == 2:
            cluster.kill(engine._actors[0])
    assert [part.tobytes() for part in found] == [part.tobytes() for part in wanted]


@needs_ray
def test_what_is_kept_in_a_lost_actor_is_lost(cluster: Any, engine: RayEngine, some: Any) -> None:
    kept = engine.retain(compute_chunk_posterior, *some.given)
    wanted = engine.sum(tally_chunk, kept)
    cluster.kill(engine._actors[1])
    with pytest.raises(ClusterLost, match="checkpoint"):
        engine.sum(tally_chunk, kept)
    np.testing.assert_array_equal(engine.sum(tally_chunk, engine.retain(compute_chunk_posterior, *some.given)), wanted)


@needs_ray
def test_it_gives_up_on_work_that_kills_every_actor(
    engine: RayEngine, some: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_engine, "MAX_ATTEMPTS", 2)
    with pytest.raises(ClusterLost, match="2 losses in the cluster in a row"):
        engine.sum(lambda chunk: os._exit(1) if chunk.number == 1 else 0)
    some.check(engine)


@needs_ray
@pytest.mark.usefixtures("cluster")
def test_actors_that_do_not_start_are_replaced(some: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class StuckActor(ray_engine.ChunkActor):
        def __init__(self) -> None:
            threading.Event().wait()

    monkeypatch.setattr(ray_engine, "START_TIMEOUT", 0.1)
    monkeypatch.setattr(ray_engine, "MAX_ATTEMPTS", 2)
    with monkeypatch.context() as patch:
        patch.setattr(ray_engine, "ChunkActor", StuckActor)
        with pytest.raises(ClusterLost, match=r"2 losses .* 2 of 2 actors did not start within 0\.1 seconds"):
            RayEngine(some.crowd, some.gold, actors=2)
    monkeypatch.setattr(ray_engine, "START_TIMEOUT", 120)
    engine = RayEngine(some.crowd, some.gold, actors=2)
    engine._actors[0], engine._all_loaded = None, False  # as after an actor that did not start
    some.check(engine)
    engine.close()


# ---------------------------------------------------------------------- what is kept, sent and raised


@needs_ray
def test_what_is_kept_goes_with_its_handle(cluster: Any, engine: RayEngine, some: Any) -> None:
    def held() -> list[int]:
        engine.sum(lambda chunk: 0)  # the next call reports the dropped states
        many = [actor.__ray_call__.remote(lambda holder: len(holder.states)) for actor in engine._actors]
        return cluster.get(many)

    gc.collect()
    assert held() == [0, 0, 0]
    kept = engine.retain(compute_chunk_posterior, *some.given)
    both = engine.retain(lambda chunk, shares: (shares, 2 * shares), kept)
    assert held() == [2, 2, 2]
    twice = engine.sum(lambda chunk, shares: (shares[1] - shares[0]).sum(), both)
    assert twice == pytest.approx(engine.sum(lambda chunk, shares: shares.sum(), kept))
    del kept, both
    gc.collect()
    assert held() == [0, 0, 0]


@needs_ray
def test_adding_up_leaves_alone_what_is_kept(engine: RayEngine) -> None:
    kept = engine.retain(lambda chunk: np.ones(5))
    for _ in range(2):
        assert engine.sum(lambda chunk, ones: ones, kept).tolist() == [float(engine.n_chunks)] * 5


@needs_ray
def test_an_error_in_the_work_is_what_the_caller_sees(engine: RayEngine, some: Any) -> None:
    def refuse(chunk: Any) -> None:
        raise InputError(f"no votes in chunk {chunk.number}")

    with pytest.raises(InputError, match=r"^no votes in chunk 0$"):
        engine.sum(refuse)
    with pytest.raises(InputError, match=r"^no votes in chunk 0$"):
        next(engine.map(refuse))
    with pytest.raises(InputError, match=r"^no votes in chunk"):
        engine.retain(refuse)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        engine.sum(lambda chunk: 1 / (chunk.number - 1))
    with pytest.raises(UsageError, match="label_probs must be of shape"):
        engine.expect(some.prior, some.label_probs[:-1])
    with pytest.raises(Exception, match="pickle"):
        next(engine.map(lambda chunk: threading.Lock()))
    some.check(engine)


@needs_ray
def test_an_error_that_cannot_be_sent_says_what_it_said(engine: RayEngine) -> None:
    def refuse(_: Any) -> None:
        class Odd(Exception):
            def __init__(self, one: int, two: int) -> None:
                super().__init__(f"odd {one} {two}")

        raise Odd(1, 2)

    with pytest.raises(Exception, match="odd 1 2"):
        engine.sum(refuse)


@needs_ray
def test_work_leaves_crowds_and_large_tables_behind(engine: RayEngine, some: Any) -> None:
    class Method:
        def __init__(self) -> None:
            self.crowd, self.small, self.large = some.crowd, np.ones(3), np.ones(10**6)

        def work(self, chunk: Any) -> Any:
            return self.small.sum()

        def careless(self, chunk: Any) -> Any:
            return self.crowd.n_votes

        def get_params(self) -> dict[str, Any]:  # as methods have it
            return {}

    assert len(ray_engine._pickle_callable(Method().work).pickled) < 10_000
    assert engine.sum(Method().work) == 3 * engine.n_chunks
    assert len(ray_engine._pickle_callable(Method()).pickled) < 10_000
    assert engine.sum(lambda chunk, method: method.work(chunk), Method()) == 3 * engine.n_chunks
    assert engine.sum(lambda chunk, large, crowd: large.sum() + len(crowd), Method().large, some.crowd) == (
        engine.n_chunks * (10**6 + some.crowd.n_tasks)
    )
    parameters = SimpleNamespace(table=Method().large)  # what is no function and no method goes whole
    assert engine.sum(lambda chunk, given: given.table.sum(), parameters) == engine.n_chunks * 10**6
    with pytest.raises(UsageError, match="a Crowd is not sent with a chunk function"):
        engine.sum(Method().careless)


# ---------------------------------------------------------------------- clusters


@needs_ray
@pytest.mark.usefixtures("cluster")
def test_a_process_is_in_one_cluster(some: Any) -> None:
    with pytest.raises(UsageError, match=r"cannot join '192\.0\.2\.1:6379'"):
        RayEngine(some.crowd, address="192.0.2.1:6379")


@needs_ray
@pytest.mark.usefixtures("cluster")
def test_shards_that_an_actor_cannot_see(some: Any, tmp_path: Path) -> None:
    sharded, _ = some.sharded(tmp_path / "crowd")
    assert len(sharded.pairs)
    (tmp_path / "crowd").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="every machine must see the same folder"):
        RayEngine(sharded, actors=1)


@needs_ray
def test_a_cluster_of_its_own_ends_with_the_engine_and_by_interruption(tmp_path: Path) -> None:
    program = """
        import os, random, signal, threading, time
        import ray
        from wisecrowd import Crowd
        from wisecrowd.engines import ray as engine
        from wisecrowd.errors import UsageError

        crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog")])
        for address in ("127.0.0.1:9", "nonsense"):
            try:
                engine.RayEngine(crowd, address=address)
            except UsageError as error:
                assert repr(address) in str(error), error
            else:
                raise AssertionError(address)
        engine.OBJECT_STORE_BYTES = 100_000_000
        before = random.getstate()
        one, two = engine.RayEngine(crowd, actors=2), engine.RayEngine(crowd, actors=1)
        assert one.sum(lambda chunk: chunk.crowd.n_votes) == 2
        one.close()
        assert ray.is_initialized()  # the other is there
        assert random.getstate() == before
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
        begun = time.monotonic()
        try:
            two.sum(lambda chunk: time.sleep(60))
        except KeyboardInterrupt:
            assert time.monotonic() - begun < 30
            assert not ray.is_initialized()
            print("interrupted")
    """
    clean = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, timeout=120, cwd=tmp_path, env=clean, check=False,
    )  # fmt: skip
    assert done.stdout == "interrupted\n", done.stderr


#: Program that starts a cluster and prints the addresses on which it listens, as hexadecimal numbers.
LISTENING = """
    import glob, os, re, sys
    {imports}
    from wisecrowd import Crowd
    from wisecrowd.engines import ray as engine

    def read(path):
        try:
            with open(path) as file:
                return file.read()
        except OSError:
            return ""

    engine.OBJECT_STORE_BYTES = 100_000_000
    made = engine.RayEngine(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog")]), actors=2)
    assert made.sum(lambda chunk: chunk.crowd.n_votes) == 2
    parents = {{int(path.split("/")[2]): read(path).rpartition(")")[2].split()[1:2] for path in glob.glob("/proc/[0-9]*/stat")}}
    family, grown = {{os.getpid()}}, True
    while grown:
        grown = {{pid for pid, parent in parents.items() if parent and int(parent[0]) in family}} - family
        family |= grown
    inodes = set()
    for path in (path for pid in family for path in glob.glob(f"/proc/{{pid}}/fd/*")):
        try:
            inodes.update(re.findall(r"socket:.(\\d+)", os.readlink(path)))
        except OSError:
            pass
    lines = [line.split() for name in ("tcp", "tcp6") for line in read(f"/proc/net/{{name}}").splitlines()[1:]]
    hosts = {{line[1].partition(":")[0] for line in lines if line[3] == "0A" and line[9] in inodes}}
    folder = engine._Cluster.folder
    token = os.path.expanduser("~/.ray/auth_token")
    print(sorted(hosts), oct(os.stat(folder).st_mode & 0o777), oct(os.stat(token).st_mode & 0o777), os.path.getsize(token))
    assert os.environ["RAY_AUTH_MODE"] == "token"
    made.close()
    print(os.path.exists(folder))
"""


@needs_ray
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("imports", ["", "import ray"], ids=["ray is imported by us", "ray is imported before"])
def test_a_cluster_of_its_own_is_for_this_user_of_this_machine(tmp_path: Path, imports: str) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LISTENING.format(imports=imports))],
        capture_output=True, text=True, timeout=120, cwd=tmp_path, env=clean | {"HOME": str(tmp_path)}, check=False,
    )  # fmt: skip
    first, second = done.stdout.splitlines() or ("", done.stderr)
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    hosts, folder, token = re.fullmatch(r"\[(.*)\] (\w+) (\w+) 64", first).groups()  # type: ignore[union-attr]
    assert set(re.findall(r"\w+", hosts)) <= loopback, hosts
    assert len(hosts) > 0
    assert (folder, token) == ("0o700", "0o600")
    assert second == "False", "the files of the cluster are removed"


def test_a_readable_token_is_made_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / ".ray" / "auth_token"
    path.parent.mkdir()
    path.write_text("secret")
    path.chmod(0o644)
    ray_engine._protect_token()
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("secret", 0o600)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    path.unlink()
    ray_engine._protect_token()
    assert not path.exists()


def test_folders_of_clusters_have_short_private_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # a long path
    folder = ray_engine._make_private_folder()
    try:
        assert len(str(folder)) <= ray_engine.MAX_FOLDER_CHARACTERS
        assert folder.stat().st_mode & 0o777 == 0o700
        assert not list(tmp_path.iterdir())
    finally:
        folder.rmdir()


def test_without_ray_the_message_is_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r'pip install "wisecrowd\[cluster\]"'):
        RayEngine(Crowd.from_triples([("t1", "ann", "cat")]))


def test_numbers_are_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match="holds numbers"):
        RayEngine(Crowd.from_codes([0, 0], [0, 1], [1.0, 2.5], tasks=["t"], workers=["a", "b"], classes=None))
