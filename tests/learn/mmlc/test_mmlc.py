"""MMLC: what it is with one expert or one worker, its formula, the oracle, and workers who err in places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")

from wisecrowd import MMLC, Crowd, CrowdLayer, DawidSkene, MajorityVote
from wisecrowd.errors import InputError, UsageError
from wisecrowd.nn.backend import import_torch
from wisecrowd.simulate import Simulation

QUICK: dict[str, Any] = {"epochs": 15, "n_experts": 3, "hidden": 8, "gate_hidden": 5}


def test_with_one_expert_all_workers_are_one(made: Simulation, X: pd.DataFrame) -> None:
    model = MMLC(**QUICK | {"n_experts": 1}).fit(X, made.crowd)
    np.testing.assert_array_equal(model.worker_vectors_, np.ones((12, 1)))
    said = model.predict_worker_proba(X, made.crowd.workers)
    np.testing.assert_allclose(said, np.repeat(model.predict_proba(X)[:, None], 12, axis=1), atol=1e-6)


@pytest.mark.parametrize("centre", ["kde", "joint", "mean", "median"])
def test_a_single_worker_is_the_oracle(made: Simulation, X: pd.DataFrame, centre: Any) -> None:
    alone = Crowd.from_triples([(task, "ann", name) for task, name in made.truth.items()])
    model = MMLC(centre=centre, **QUICK).fit(X, alone)
    np.testing.assert_allclose(model.oracle_, model.worker_vectors_.iloc[0], atol=1e-9)
    np.testing.assert_allclose(model.predict_worker_proba(X, ["ann"])[:, 0], model.predict_proba(X), atol=1e-5)


def test_what_workers_say_is_the_formula(made: Simulation, X: pd.DataFrame) -> None:
    model = MMLC(**QUICK, precision="double").fit(X, made.crowd)
    network, own = model.network_, model.network_.worker_parameters
    rows = network.prepare_inputs(X.to_numpy()[:4])
    weights = {name: each.detach().numpy() for name, each in network.module.named_parameters()}
    first = np.maximum(rows @ weights["trunk.1.weight"].T + weights["trunk.1.bias"], 0).reshape(4, 3, 8)
    second = weights["trunk.5.weight"][:, :, 0].reshape(3, 32, 8)
    experts = np.maximum(np.einsum("nei,eoi->neo", first, second) + weights["trunk.5.bias"].reshape(3, 32), 0)
    table = weights["worker_parameters.W1"]
    gate = (
        np.maximum(table + weights["worker_parameters.b1"], 0) @ weights["worker_parameters.W2.weight"].T
        + weights["worker_parameters.W2.bias"]
    )
    v = np.exp(gate) / np.exp(gate).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.worker_vectors_, v, atol=1e-12)
    mixed = np.einsum("re,neo->nro", v, experts)
    logits = np.maximum(
        mixed @ weights["worker_parameters.out.0.weight"].T + weights["worker_parameters.out.0.bias"], 0
    )
    logits = logits @ weights["worker_parameters.out.2.weight"].T + weights["worker_parameters.out.2.bias"]
    wanted = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(model.predict_worker_proba(X.iloc[:4], made.crowd.workers), wanted, atol=1e-9)
    assert own.W1.shape == (12, 5)


def test_the_spread_of_vectors_tells_whether_workers_differ(made: Simulation, X: pd.DataFrame) -> None:
    model = MMLC(**QUICK).fit(X, made.crowd)
    spread = model.vector_spread_
    np.testing.assert_allclose(spread.max(), model.worker_vectors_.to_numpy().std(axis=0).max())
    assert spread.is_monotonic_decreasing
    assert MMLC(**QUICK | {"n_experts": 1}).fit(X, made.crowd).vector_spread_.max() == 0


def test_layers_after_the_mixture_can_be_retrained_with_the_truth(made: Simulation, X: pd.DataFrame) -> None:
    model = MMLC(**QUICK).fit(X, made.crowd)
    before = model.predict_proba(X)
    proba = model.retrain_output(X, made.truth)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)
    codes = model.classes_.get_indexer(pd.Index(made.truth.loc[X.index]))
    rows = np.arange(len(X))
    assert np.log(proba[rows, codes]).mean() > np.log(before[rows, codes]).mean()
    np.testing.assert_array_equal(model.predict_proba(X), before)  # the model stays as it was
    with pytest.raises(InputError, match="unknown classes"):
        model.retrain_output(X, ["no such class"] * len(X))


def test_all_workers_start_alike() -> None:
    model = MMLC(**QUICK)
    vectors = model._worker_mixtures(model._make_builder([4], 12, 3).build(0))
    assert np.ptp(vectors, axis=0).max() == 0


def test_a_worker_with_one_vote_stays_near_and_a_stranger_is_the_oracle(made: Simulation, X: pd.DataFrame) -> None:
    frame = made.crowd.to_frame()
    frame.loc[len(frame)] = [X.index[0], "zoe", made.crowd.classes[0], *[1.0] * (frame.shape[1] - 3)]
    model = MMLC(**QUICK).fit(X, frame)
    vectors = model.worker_vectors_
    from_start = (vectors - vectors.loc["zoe"]).abs().max(axis=1).drop("zoe")
    assert vectors.loc["zoe"].notna().all()
    assert from_start.max() > 0
    said = model.predict_worker_proba(X.iloc[:5], ["nobody", "zoe"])
    np.testing.assert_array_equal(said[:, 0], model.predict_proba(X.iloc[:5]))


def test_the_oracle_that_knows_the_truth_is_better_than_any_centre(made: Simulation, X: pd.DataFrame) -> None:
    def surprise(model: MMLC) -> float:
        proba = model.predict_proba(X)[np.arange(len(X)), made.crowd.classes.get_indexer(made.truth)]
        return float(-np.log(np.maximum(proba, 1e-12)).mean())

    some = made.truth.iloc[:100]
    best = MMLC(centre="truth", **QUICK).fit(X, made.crowd, truth=made.truth)
    for centre in ("kde", "joint", "mean", "median"):
        other = MMLC(centre=centre, **QUICK).fit(X, made.crowd, truth=made.truth)  # type: ignore[arg-type]
        np.testing.assert_array_equal(other.worker_vectors_, best.worker_vectors_)  # nothing else was moved
        assert surprise(best) <= surprise(other) + 1e-9
    assert MMLC(centre="truth", **QUICK).fit(X, made.crowd, truth=some).oracle_.sum() == pytest.approx(1)
    with pytest.raises(UsageError, match="centre='truth'"):
        MMLC(centre="truth", **QUICK).fit(X, made.crowd)


def test_other_oracles_of_a_fit_need_no_other_fit(made: Simulation, X: pd.DataFrame) -> None:
    model = MMLC(**QUICK).fit(X, made.crowd)
    other = MMLC(centre="median", weights="labels", **QUICK).fit(X, made.crowd)
    vector = model.oracle_by("median", "labels")
    np.testing.assert_array_equal(vector, other.oracle_)
    np.testing.assert_allclose(model.answer_as(X, vector)[:, 0], other.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(
        model.answer_as(X, model.worker_vectors_), model.predict_worker_proba(X, made.crowd.workers), atol=1e-6
    )
    place = made.crowd.classes.get_indexer(made.truth)  # type: ignore[union-attr]

    def surprise(v: Any) -> float:
        return float(-np.log(model.answer_as(X, v)[np.arange(len(X)), 0, place]).mean())

    best = model.oracle_for(X, made.truth)
    assert surprise(best) <= min(surprise(model.oracle_by(kind)) for kind in ("kde", "joint", "mean", "median"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="each of 3 experts"):
        model.answer_as(X, np.ones(4) / 4)
    with pytest.raises(UsageError, match="not fitted"):
        MMLC().oracle_by()


def test_truth_is_aligned_with_features_by_task(made: Simulation, X: pd.DataFrame) -> None:
    model = MMLC(**QUICK).fit(X, made.crowd)
    best = model.oracle_for(X, made.truth)
    np.testing.assert_array_equal(model.oracle_for(X, made.truth.iloc[::-1]), best)
    np.testing.assert_array_equal(model.oracle_for(X.to_numpy(), made.truth.to_numpy()), best)
    with pytest.raises(InputError, match="one class per row of X"):
        model.oracle_for(X, made.truth.iloc[:3])
    with pytest.raises(InputError, match="unknown classes: 'bird'"):
        model.oracle_for(X, made.truth.where(made.truth != made.truth.iloc[0], "bird"))


def test_all_votes_count_after_a_search_for_the_number_of_epochs(made: Simulation, X: pd.DataFrame) -> None:
    model = MMLC(**QUICK | {"epochs": "auto"}).fit(X, made.crowd)
    assert model.counts_.tolist() == made.crowd.votes_per_worker.tolist()


def test_equal_workers_make_both_weightings_the_same(X: pd.DataFrame) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "task": np.tile(X.index, 3),
            "worker": np.repeat(["a", "b", "c"], len(X)),
            "label": rng.integers(3, size=3 * len(X)),
        }
    )
    one, other = (MMLC(weighting=each, **QUICK).fit(X, frame) for each in ("annotation", "worker"))  # type: ignore[arg-type]
    np.testing.assert_allclose(one.posterior_, other.posterior_, atol=1e-4)


def test_workers_who_err_in_places_are_told_apart() -> None:
    """Half of them guess where the first feature is positive, the others where it is negative."""
    rng = np.random.default_rng(1)
    n_tasks, n_workers = 600, 20
    X = rng.normal(size=(n_tasks, 3))
    truth = (X[:, 1] + X[:, 2] > 0).astype(int)
    task = np.repeat(np.arange(n_tasks), 4)
    worker = np.concatenate([rng.choice(n_workers, 4, replace=False) for _ in range(n_tasks)])
    blind = (X[task, 0] > 0) == (worker % 2 == 0)
    label = np.where(blind, rng.integers(2, size=len(task)), truth[task])
    crowd = Crowd.from_frame(pd.DataFrame({"task": task, "worker": worker, "label": label}))
    kept, hidden = crowd.hide(0.2)
    model = MMLC(epochs=60, n_experts=4, hidden=16, learning_rate=5e-3).fit(X, kept)
    said = model.predict_worker_proba(X, kept.workers)
    foretold = np.log(said[hidden.task, hidden.worker, hidden.label]).mean()
    confusion = DawidSkene().fit(kept)
    by_matrix = np.einsum("nk,rkl->nrl", confusion.posterior_, confusion.confusion_)
    assert foretold > np.log(by_matrix[hidden.task, hidden.worker, hidden.label]).mean() + 0.05
    layer = CrowdLayer(epochs=60, hidden=16).fit(X, kept)
    by_layer = layer.predict_worker_proba(X, kept.workers)
    assert foretold > np.log(by_layer[hidden.task, hidden.worker, hidden.label]).mean() + 0.05
    from sklearn.metrics import silhouette_score

    assert silhouette_score(model.worker_vectors_, np.arange(n_workers) % 2) > 0.5


def test_it_is_no_worse_than_the_vote_where_most_are_right(
    featured: Callable[..., tuple[Simulation, pd.DataFrame]],
) -> None:
    made, X = featured(n_tasks=300, seed=5)
    model = MMLC(learning_rate=3e-3, n_experts=4, hidden=16).fit(X, made.crowd)
    vote = MajorityVote().fit(made.crowd)
    assert model.score(X, made.truth) > (vote.labels_ == made.truth).mean() - 0.02
    assert model.epochs_ == int(model.search_["hidden"].to_numpy().argmax()) + 1


def test_a_map_has_all_workers_and_the_oracle(made: Simulation, X: pd.DataFrame) -> None:
    found = MMLC(**QUICK).fit(X, made.crowd).worker_map()
    assert list(found.index) == [*made.crowd.workers, "(oracle)"]
    assert np.isfinite(found[["x", "y"]].to_numpy()).all()


@pytest.mark.parametrize("size", ["labelme", "text", "music"])
def test_the_papers_sizes_are_there(made: Simulation, X: pd.DataFrame, size: Any) -> None:
    model = MMLC(classifier=size, epochs=1).fit(X, made.crowd)
    assert model.worker_vectors_.shape[1] == {"labelme": 16, "text": 10, "music": 10}[size]
    assert sum(each.numel() for each in model.network_.trunk.parameters()) > 1000
    assert import_torch().isfinite(model.network_.worker_parameters.b1).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_experts": 0}, "n_experts"),
        ({"centre": "middle"}, "centre"),
        ({"weights": "all"}, "weights"),
        ({"weighting": "task"}, "weighting"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"classifier": "mlp"}, "classifier"),
        ({"schedule": "cosine"}, "schedule='constant'"),
    ],
)
def test_settings_are_checked(made: Simulation, X: pd.DataFrame, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        MMLC(**settings).fit(X, made.crowd)
