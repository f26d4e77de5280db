"""Methods on a cluster: every one that streams gives what it gives in memory, and laws hold there too."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import ModelAverage, estimate_confidence, kernels, simulate_crowd
from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.laws import LAWS
from wisecrowd.base.registry import methods
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.engines import LocalEngine, StreamEngine, base
from wisecrowd.engines import ray as ray_engine
from wisecrowd.engines.ray import RayEngine
from wisecrowd.errors import ignore_fit_warnings
from wisecrowd.evaluate.confidence import ConfidenceStream

pytest.importorskip("ray", reason='the Ray engine needs pip install "wisecrowd[cluster]"')

pytestmark = pytest.mark.usefixtures("cluster")

STREAMING = [name for name, method in methods("aggregate").items() if getattr(method, "streams", False)]
#: Settings under which slow methods are quick: a cluster and the memory agree after any number of iterations and restarts.
QUICK = {"mace": {"n_init": 2}, "glad": {"max_iter": 3}, "rasch": {"max_iter": 3}, "two-pl": {"max_iter": 3}}


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    made = simulate_crowd(n_tasks=60, n_classes=3, votes_per_task=4, workers={"expert": 3, "noisy": 6, "spammer": 2})
    return made.crowd


@pytest.fixture(scope="module")
def shards(crowd: Crowd, tmp_path_factory: pytest.TempPathFactory) -> ShardedCrowd:
    return crowd.to_shards(tmp_path_factory.mktemp("shards") / "crowd", votes_per_shard=70)


@pytest.fixture(scope="module")
def shared_engines(cluster: Any) -> Iterator[dict[tuple[object, ...], RayEngine]]:  # noqa: ARG001
    """Engines by crowd, gold and kernels. The actors of each are processes, which take seconds to start."""
    engines: dict[tuple[object, ...], RayEngine] = {}
    yield engines
    for engine in engines.values():
        RayEngine.close(engine)


@pytest.fixture
def engines_are_shared(
    shared_engines: dict[tuple[object, ...], RayEngine], monkeypatch: pytest.MonkeyPatch
) -> dict[tuple[object, ...], RayEngine]:
    """Let fits to the same crowd, with the same gold, use the same actors."""

    def make(crowd: Any, gold: Any = None, *, address: None = None, compiled: bool | None = None) -> RayEngine:
        codes = None if gold is None else np.concatenate([gold(number) for number in range(crowd.n_shards)]).tobytes()
        key = (id(crowd), codes, address, compiled)
        if key not in shared_engines:
            shared_engines[key] = RayEngine(crowd, gold, compiled=compiled)
            shared_engines[key].close = lambda: None  # type: ignore[method-assign]  # the next fit uses it
        return shared_engines[key]

    monkeypatch.setattr(ray_engine, "RayEngine", make)
    return shared_engines


@pytest.mark.parametrize("name", STREAMING)
def test_a_cluster_changes_nothing(
    name: str,
    crowd: Crowd,
    shards: ShardedCrowd,
    engines_are_shared: dict[tuple[object, ...], RayEngine],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    if "categorical" not in methods("aggregate")[name].answer_types:
        crowd = crowd.replace_fields(ordered=True)
        shards = crowd.to_shards(tmp_path_factory.mktemp("ordered") / "crowd", votes_per_shard=70)
    kind: Callable[..., Any] = functools.partial(methods("aggregate")[name], **QUICK.get(name, {}))
    known = {crowd.tasks[4]: crowd.classes[1]}  # type: ignore[index]  # it has classes
    with ignore_fit_warnings():
        found: Aggregator = kind(engine="ray").fit(shards, truth=known)
        wanted: Aggregator = kind().fit(crowd, truth=known)
    assert 1 <= len(engines_are_shared) <= 3, "the fit was on the cluster"
    np.testing.assert_allclose(found.posterior_, wanted.posterior_, atol=1e-9)
    np.testing.assert_allclose(found.workers_, wanted.workers_, atol=1e-9)


@pytest.mark.parametrize(
    "law", ["row_order_is_irrelevant", "gold_is_kept", "the_objective_never_falls", "chunks_change_nothing"]
)
def test_laws_hold_on_a_cluster(law: str, crowd: Crowd) -> None:
    LAWS[law](methods("aggregate")["dawid-skene"](engine="ray"), crowd)


@pytest.mark.parametrize("name", ["dawid-skene", "glad"])
def test_labels_are_computed_by_the_actors(
    name: str, crowd: Crowd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = crowd.to_shards(tmp_path / "crowd", votes_per_shard=70)
    with ignore_fit_warnings():
        fitted: Any = methods("aggregate")[name](engine="ray", max_iter=5).fit(shards)
        expected: Any = methods("aggregate")[name](max_iter=5).fit(crowd)

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("the driver computes posteriors")

    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_allclose(copied.posterior_, expected.posterior_, atol=1e-9)  # a copy needs no cluster
    for target in (kernels, base):
        for function in ("posterior", "expect", "compute_chunk_posterior"):
            monkeypatch.setattr(target, function, fail, raising=False)
    for engine in (LocalEngine, StreamEngine):
        monkeypatch.setattr(engine, "map", fail)
    with pytest.raises(AssertionError, match="the driver computes posteriors"):
        _ = copied.posterior_
    tables = list(fitted.posterior_tables())
    assert [len(table) for table in tables] == [info.n_tasks for info in shards.shard_infos]
    pd.testing.assert_frame_equal(pd.concat(tables), expected.proba_, atol=1e-9, check_names=False)
    fitted.write_labels(tmp_path / "labels.parquet")
    assert pd.read_parquet(tmp_path / "labels.parquet")["label"].tolist() == expected.labels_.tolist()
    np.testing.assert_allclose(fitted.posterior_, expected.posterior_, atol=1e-9)


def test_confidence_is_computed_on_a_cluster(crowd: Crowd, tmp_path: Path) -> None:
    assert "model-average" in STREAMING
    shards = crowd.to_shards(tmp_path / "crowd", votes_per_shard=70)
    stream = ConfidenceStream(ModelAverage(engine="ray").fit(shards))
    confidence = pd.concat([pd.Series(part.confidence, part.posterior.index) for part in stream])
    expected = estimate_confidence(ModelAverage().fit(crowd), crowd)
    np.testing.assert_allclose(confidence[crowd.tasks], expected.confidence, atol=1e-6)
    assert stream.accuracy.accuracy == pytest.approx(expected.accuracy.accuracy, abs=1e-3)
