"""Votes, weighted votes and models of difficulty: a crowd in chunks gives what it gives in memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import GLAD, IWMV, Crowd, MajorityVote, Rasch, TwoPL, Wawa, ZeroBasedSkill, simulate_crowd
from wisecrowd.aggregate.categorical import (
    _ability_model,
    _sharded_ability_likelihood,
    _weighted_vote,
    majority_vote,
)
from wisecrowd.base.aggregator import Aggregator
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.em import confusion
from wisecrowd.engines.base import Chunk, ChunkState, Engine, sum_over_chunks
from wisecrowd.errors import UsageError, ignore_fit_warnings

VOTES = [
    MajorityVote(), MajorityVote(soft=False), MajorityVote(ties="first"), Wawa(), IWMV(), ZeroBasedSkill(max_iter=15),
]  # fmt: skip
CLIMBS = [
    GLAD(), GLAD(prior="estimate", ability_sd=np.inf), GLAD(ability_sd=0), Rasch(guessing="chance", difficulty_sd=0),
    Rasch(m_steps=5), TwoPL(), TwoPL(guessing=0.1, discrimination_sd=0),
]  # fmt: skip
each_vote = pytest.mark.parametrize("method", VOTES, ids=repr)
each_climb = pytest.mark.parametrize("method", CLIMBS, ids=repr)

Shards = Callable[..., ShardedCrowd]


def crowd_of(seed: int, n_tasks: int = 20, *, weighted: bool = False) -> Crowd:
    """Some tasks have one vote, one has none, and one worker never voted."""
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((n_tasks, 7)) < rng.uniform(0.15, 0.9, (n_tasks, 1)))
    truth = rng.integers(3, size=n_tasks)
    label = np.where(rng.random(len(task)) < 0.6, truth[task], rng.integers(3, size=len(task)))
    task[task == n_tasks // 2] = 0
    weight = rng.uniform(0.5, 2, len(task)) if weighted else None
    return Crowd.from_codes(task, worker, label, tasks=[f"t{i:03d}" for i in range(n_tasks)], workers=list("abcdefgh"),
                 classes=list("xyz"), weight=weight, duplicates="keep")  # fmt: skip


def gold_of(crowd: Crowd) -> dict[str, str]:
    """Of three tasks, one of which nobody voted on."""
    return {crowd.tasks[0]: "y", crowd.tasks[crowd.n_tasks // 2]: "z", crowd.tasks[-1]: "x"}


@pytest.fixture(scope="module")
def divided(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    """Divide a crowd, each once."""
    folder = tmp_path_factory.mktemp("crowds")

    def divide(crowd: Crowd, votes: int = 25) -> ShardedCrowd:
        place = folder / f"{crowd.digest}-{votes}"
        return Crowd.open(place) if place.exists() else crowd.to_shards(place, votes_per_shard=votes)

    return divide


@pytest.fixture
def shards(divided: Shards) -> Iterator[Shards]:
    """Divide a crowd; at the end nothing but the shards may be left in their folders."""
    used: list[ShardedCrowd] = []

    def divide(*given: Any) -> ShardedCrowd:
        used.append(divided(*given))
        return used[-1]

    yield divide
    gc.collect()
    assert not [left for crowd in used for left in crowd.folder.glob(".wisecrowd-*")]


def fit(method: Aggregator, crowd: Any, **options: Any) -> Any:
    given = {name: options.pop(name) for name in ("n_jobs", "max_iter", "tol") if name in options}
    with ignore_fit_warnings():
        return method.clone_unfitted().set_params(**given).fit(crowd, **options)


def same(found: Any, wanted: Any) -> None:
    """Everything that was learnt, to 1e-9."""
    np.testing.assert_allclose(found.posterior_, wanted.posterior_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.tally_, wanted.tally_, rtol=0, atol=1e-9)
    pd.testing.assert_frame_equal(found.workers_, wanted.workers_, rtol=0, atol=1e-9)
    assert found.labels_.index.equals(wanted.labels_.index)
    for name in ("trace_", "prior_", "task_parameters_"):
        if hasattr(wanted, name):
            np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-12, atol=1e-9)
    assert getattr(found, "n_iter_", 0) == getattr(wanted, "n_iter_", 0)
    if hasattr(wanted, "tasks_"):
        pd.testing.assert_frame_equal(found.tasks_, wanted.tasks_, rtol=0, atol=1e-9)


@pytest.mark.slow
@each_vote
def test_votes_are_the_same_in_shards(method: Aggregator, shards: Shards) -> None:
    for seed in range(2):
        crowd = crowd_of(seed, weighted=bool(seed))
        for truth, n_jobs in ((None, 1), (gold_of(crowd), 2)):
            wanted = fit(method, crowd, truth=truth)
            for votes in (1, 10, 10**6):
                same(fit(method, shards(crowd, votes), truth=truth, n_jobs=n_jobs), wanted)


@pytest.mark.slow
@each_climb
def test_climbs_are_the_same_in_shards(method: Aggregator, shards: Shards) -> None:
    for seed in range(2):
        crowd = crowd_of(seed, weighted=bool(seed))
        truth = gold_of(crowd) if seed else None
        wanted = fit(method, crowd, truth=truth, max_iter=4)
        same(fit(method, shards(crowd, 40), truth=truth, max_iter=4, n_jobs=1 + seed), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("method", [GLAD(), Rasch(), TwoPL()], ids=repr)
def test_a_task_can_be_a_shard(method: Aggregator, shards: Shards) -> None:
    crowd = crowd_of(2, n_tasks=10)
    sharded = shards(crowd, 1)
    assert max(part.n_tasks for part in sharded.shard_infos) <= 2  # one goes with the task that nobody voted on
    same(fit(method, sharded, max_iter=2, truth=gold_of(crowd)), fit(method, crowd, max_iter=2, truth=gold_of(crowd)))


@pytest.mark.slow
def test_a_whole_fit_ends_where_it_does_in_memory(shards: Shards) -> None:
    crowd = simulate_crowd(200, 20, 3, votes_per_task=5, random_state=0, difficulty="beta").crowd
    wanted = Rasch().fit(crowd)
    assert wanted.converged_
    same(Rasch().fit(shards(crowd, 600)), wanted)


class Apart(Engine):
    """Pieces in memory, as a cluster has them: what is kept there goes with the engine."""

    def __init__(self, crowd: Any, chunks: list[Chunk]) -> None:
        self.crowd, self.chunks, self.gold = crowd, chunks, None

    def sum(self, work: Any, *shared: Any) -> Any:
        return sum_over_chunks(self.chunks, work, lambda chunk: self._given(chunk, shared))

    def map(self, work: Any, *shared: Any) -> Iterator[Any]:
        return (work(chunk, *self._given(chunk, shared)) for chunk in self.chunks)

    def retain(self, work: Any, *shared: Any) -> ChunkState:
        return Held(list(self.map(work, *shared)))

    def _given(self, chunk: Chunk, shared: Any) -> list[Any]:
        return [each.get(chunk.number) if isinstance(each, Held) else each for each in shared]

    def close(self) -> None:
        self.chunks = []


class Held(ChunkState):
    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def get(self, number: int) -> Any:
        return self.values[number]


@pytest.mark.parametrize("method", [*VOTES, GLAD(), TwoPL()], ids=repr)
@pytest.mark.parametrize("in_memory", [False, True])
def test_other_engines_may_take_their_pieces_along(
    method: Aggregator, in_memory: bool, shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = crowd_of(3)
    sharded = shards(crowd)
    wanted = fit(method, crowd, **({} if isinstance(method, MajorityVote | Wawa) else {"max_iter": 5}))

    def engine(*_: Any, **__: Any) -> Engine:
        chunks = [Chunk(shard, None, number, sharded.n_shards) for number, shard in enumerate(sharded.shards)]
        return Apart(crowd if in_memory else sharded, chunks)

    for module in (majority_vote, confusion, _weighted_vote, _ability_model):
        monkeypatch.setattr(module, "engine_for", engine)
    same(fit(wanted, crowd if in_memory else sharded), wanted)


@pytest.mark.slow
def test_what_is_learnt_of_tasks_stays_beside_them(shards: Shards, tmp_path: Path, monkeypatch: Any) -> None:
    crowd = crowd_of(4)
    sharded, wanted = shards(crowd), fit(TwoPL(), crowd, max_iter=3)
    fitted = fit(TwoPL(), sharded, max_iter=3)
    assert list(sharded.folder.glob(".wisecrowd-*"))
    assert "tasks_" not in vars(fitted)
    tables = list(fitted.task_tables())
    assert [len(table) for table in tables] == [part.n_tasks for part in sharded.shard_infos]
    pd.testing.assert_frame_equal(pd.concat(tables), wanted.tasks_, rtol=0, atol=1e-9)
    for _ in range(2):  # answers are inferred from what was kept, as often as somebody asks
        np.testing.assert_allclose(np.concatenate(list(fitted.posterior_tables())), wanted.posterior_, atol=1e-9)
    fitted.write_labels(tmp_path / "labels.parquet")
    assert pd.read_parquet(tmp_path / "labels.parquet")["label"].tolist() == wanted.labels_.tolist()
    monkeypatch.setattr(_sharded_ability_likelihood, "MAX_COLLECTED_CELLS", 10)
    with pytest.raises(UsageError, match="task_tables"):
        _ = fitted.tasks_
    with ignore_fit_warnings():
        fitted.fit(crowd)  # what the fit before has left is gone
    assert not list(sharded.folder.glob(".wisecrowd-*"))
    pd.testing.assert_frame_equal(next(fitted.task_tables()), wanted.tasks_)


@pytest.mark.slow
def test_a_fit_on_shards_teaches_one_in_memory(shards: Shards) -> None:
    crowd = crowd_of(5)
    known = fit(Rasch(), shards(crowd), max_iter=5)
    found, wanted = (fit(Rasch(), crowd, max_iter=1, start=start) for start in (known, fit(Rasch(), crowd, max_iter=5)))
    np.testing.assert_allclose(found.posterior_, wanted.posterior_, atol=1e-9)


@pytest.mark.slow
def test_a_table_can_be_started_from(shards: Shards) -> None:
    crowd = crowd_of(6)
    start = MajorityVote().fit(crowd).proba_.sample(frac=1, random_state=0)
    same(fit(GLAD(), shards(crowd), start=start, max_iter=3), fit(GLAD(), crowd, start=start, max_iter=3))


def test_what_pieces_cannot_do_is_refused(shards: Shards) -> None:
    crowd = crowd_of(7)
    sharded = shards(crowd)
    for start in (fit(GLAD(), crowd, max_iter=2), np.ones((crowd.n_tasks, 3))):
        with pytest.raises(UsageError, match=r"start=fitted\.proba_"):
            GLAD().fit(sharded, start=start)
    with pytest.raises(UsageError, match="ties='random' draws for all tasks together"):
        MajorityVote(ties="random").fit(sharded)
    one = MajorityVote(ties="random").fit(shards(crowd, 10**6))  # in one chunk they are together
    np.testing.assert_array_equal(one.posterior_, MajorityVote(ties="random").fit(crowd).posterior_)
    with pytest.raises(UsageError, match="engine must be"):
        Wawa(engine="spark").fit(crowd)


def test_counts_without_workers_are_voted_on(shards: Shards) -> None:
    counts = Crowd.from_counts(pd.DataFrame({"x": [3, 0, 1], "y": [1, 2, 1]}, index=["t1", "t2", "t3"]))
    found, wanted = MajorityVote().fit(shards(counts, 1)), MajorityVote().fit(counts)
    np.testing.assert_array_equal(found.posterior_, wanted.posterior_)
    np.testing.assert_array_equal(found.tally_, wanted.tally_)
