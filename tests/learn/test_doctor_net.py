"""DoctorNet against its formulas, both stages, and large crowds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from wisecrowd import Crowd, DoctorNet, load
from wisecrowd.errors import UsageError
from wisecrowd.learn import doctor_net
from wisecrowd.nn.epoch_watchers import watch_epochs
from wisecrowd.simulate import Simulation

torch = pytest.importorskip("torch")

Variant = Literal["DN", "WDN", "IWDN"]
QUICK: dict[str, Any] = {"hidden": 8, "precision": "double", "epochs": 5, "learning_rate": 0.01}


@pytest.fixture(scope="module", params=[("DN", False), ("DN", True), ("WDN", False), ("IWDN", True)], ids=str)
def model(request: pytest.FixtureRequest, made: Simulation, X: pd.DataFrame) -> DoctorNet:
    variant, tied = request.param
    return DoctorNet(variant=variant, tied=tied, weight_epochs=2, **QUICK).fit(X, made.crowd)


def heads(model: DoctorNet, batch: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the label probabilities of every worker on every task, and their log-weights, by task."""
    h = np.hstack([batch.hidden.detach().numpy(), np.ones((len(batch.hidden), 1))])
    D = model.network_.worker_table("D").detach().numpy()
    if model.tied:
        head = model.network_.head
        D = D + np.vstack([head.weight.detach().numpy().T, head.bias.detach().numpy()])
    said = np.array([[softmax(row @ D[worker]) for worker in range(len(D))] for row in h])
    if model.variant == "DN":
        return said, np.zeros(said.shape[:2])
    w = model.network_.worker_table("w").detach().numpy()
    if model.variant == "WDN":
        return said, np.tile(w[:, 0], (len(h), 1))
    return said, h @ w.T / np.sqrt(h.shape[1])


def test_answers_and_loss_are_as_written(
    model: DoctorNet, made: Simulation, X: pd.DataFrame, seen_by: Callable[..., Any]
) -> None:
    crowd, batch = made.crowd, seen_by(model, X, made.crowd)
    said, scores = heads(model, batch)
    np.testing.assert_allclose(model.predict_worker_proba(X, crowd.workers), said, atol=1e-10)
    weight = softmax(scores, axis=1)
    np.testing.assert_allclose(model.predict_proba(X), (weight[:, :, None] * said).sum(axis=1), atol=1e-10)
    np.testing.assert_allclose(model.weights_, weight.mean(axis=0), atol=1e-10)
    D, votes = model.network_.worker_table("D").detach().numpy(), np.bincount(crowd.worker)
    likelihood = np.log(said[crowd.task, crowd.worker, crowd.label]).sum()
    ridge = 0.5 * (D[votes > 0] ** 2).sum()  # of each worker once, whatever the number of votes
    assert model._loss(batch).item() == pytest.approx((ridge - likelihood) / crowd.n_votes, abs=1e-10)


@pytest.mark.parametrize("variant", ["WDN", "IWDN"])
def test_weights_are_judged_by_tasks_that_their_worker_did_not_label(
    variant: Variant, made: Simulation, X: pd.DataFrame, seen_by: Callable[..., Any]
) -> None:
    crowd = made.crowd
    model = DoctorNet(variant=variant, weight_epochs=2, head_l2=0.3, **QUICK).fit(X, crowd)
    job, network = model._prepare_job(X.to_numpy(), crowd, None)
    network.restore(model.network_.arrays())
    member = torch.arange(crowd.n_workers)
    found = model._weights_loss(network, job.training_set, torch.arange(20), member)
    said, scores = heads(model, seen_by(model, X, crowd))
    total = 0.0
    for task in range(20):
        mine = crowd.task == task
        assert crowd.worker is not None
        others = ~np.isin(np.arange(crowd.n_workers), crowd.worker[mine])
        answer = softmax(scores[task, others]) @ said[task, others]
        total -= np.bincount(crowd.label[mine], minlength=3) / mine.sum() @ np.log(answer)
    ridge = 0.3 / 2 * (model.network_.worker_table("w").detach().numpy() ** 2).sum() / crowd.n_tasks
    assert found.item() == pytest.approx(total / 20 + ridge, abs=1e-10)


@pytest.mark.parametrize("variant", ["WDN", "IWDN"])
def test_the_second_stage_moves_nothing_but_weights(variant: Variant, made: Simulation, X: pd.DataFrame) -> None:
    plain = DoctorNet(**QUICK).fit(X, made.crowd)
    more = DoctorNet(variant=variant, weight_epochs=3, **QUICK).fit(X, made.crowd)
    np.testing.assert_array_equal(more.network_.worker_table("D").detach(), plain.network_.worker_table("D").detach())
    assert more.network_.worker_table("w").detach().abs().sum() > 0
    assert more.n_iter_ == len(more.history_) == plain.n_iter_ + 3
    assert more.history_.index.tolist() == list(range(1, 9))


def test_a_step_touches_only_who_voted(made: Simulation, X: pd.DataFrame, seen_by: Any) -> None:
    model = DoctorNet(**QUICK).fit(X, made.crowd)
    some = Crowd.from_frame(
        made.crowd.to_frame().query("worker in @made.crowd.workers[:4]"),
        tasks=made.crowd.tasks, workers=made.crowd.workers, classes=made.crowd.classes,
    )  # fmt: skip
    model._loss(seen_by(model, X, some)).backward()
    gradient = model.network_.worker_parameters.D.grad
    assert gradient.is_sparse
    assert gradient.coalesce().indices()[0].tolist() == [0, 1, 2, 3]


def test_blocks_of_workers_do_not_show(model: DoctorNet, X: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = model.predict_proba(X)
    monkeypatch.setattr(doctor_net, "MAX_BLOCK_CELLS", 5 * at_once.size)
    np.testing.assert_allclose(model.predict_proba(X), at_once, atol=1e-12)


@pytest.mark.parametrize("variant", ["DN", "WDN", "IWDN"])
def test_a_committee_of_the_busiest_speaks_for_a_large_crowd(
    variant: Variant, made: Simulation, X: pd.DataFrame
) -> None:
    frame = made.crowd.to_frame()
    frame = frame[(frame["worker"] != made.crowd.workers[0]) | (frame.groupby("worker").cumcount() < 2)]
    crowd = Crowd.from_frame(frame, tasks=made.crowd.tasks, workers=[*made.crowd.workers, "nobody"])
    fitted = DoctorNet(variant=variant, committee=11, **QUICK).fit(X, crowd)
    assert fitted.committee_.tolist() == list(range(1, 12))
    assert fitted.weights_[[0, 12]].tolist() == [0, 0]
    assert np.isclose(fitted.weights_.sum(), 1)
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)
    everyone = DoctorNet(variant=variant, **QUICK).fit(X, crowd)
    assert everyone.committee_.tolist() == list(range(12))  # who never voted has nothing to say


def test_many_who_say_little_do_not_outvote_those_who_say_much() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=400)
    X = np.eye(3)[truth] + 0.4 * rng.normal(size=(400, 3))
    often, rarely = (rng.integers(400, size=(workers, votes)) for workers, votes in ((4, 200), (8, 15)))
    task = np.concatenate([often.ravel(), rarely.ravel()])
    worker = np.concatenate([np.repeat(np.arange(4), 200), np.repeat(np.arange(4, 12), 15)])
    label = np.where(worker < 4, truth[task], (truth[task] + 1) % 3)  # the eight are always wrong
    crowd = Crowd.from_codes(
        task, worker, label, tasks=range(400), workers=range(12), classes=range(3), duplicates="first"
    )
    settings: dict[str, Any] = {"hidden": 16, "learning_rate": 0.01, "epochs": 30, "head_l2": 0.0}
    plain, weighted = (DoctorNet(variant=variant, **settings).fit(X, crowd) for variant in ("DN", "WDN"))
    assert weighted.weights_[:4].min() > 1 / 12 > weighted.weights_[4:].max()
    assert weighted.score(X, truth) > plain.score(X, truth) + 0.1


def test_a_softmax_of_all_speaks_for_those_who_said_little() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=300)
    X = np.eye(3)[truth] + 0.4 * rng.normal(size=(300, 3))
    crowd = Crowd.from_codes(
        np.arange(300), np.arange(300), truth, tasks=range(300), workers=range(300), classes=range(3)
    )
    settings: dict[str, Any] = {"hidden": 16, "learning_rate": 0.01, "epochs": 20}
    alone, tied = (DoctorNet(tied=tied, **settings).fit(X, crowd).score(X, truth) for tied in (False, True))
    assert tied > 0.9 > alone


def test_tasks_that_everybody_labelled_say_nothing_of_weights() -> None:
    rng = np.random.default_rng(0)
    crowd = Crowd.from_triples([(task, worker, int(rng.integers(2))) for task in range(20) for worker in range(3)])
    fitted = DoctorNet(variant="WDN", **QUICK).fit(rng.normal(size=(20, 2)), crowd)
    np.testing.assert_allclose(fitted.weights_, 1 / 3)


def test_the_best_epoch_of_held_out_votes(made: Simulation, X: pd.DataFrame) -> None:
    fitted = DoctorNet(variant="WDN", validation=0.2, keep="selected", weight_epochs=2, **QUICK).fit(X, made.crowd)
    assert fitted.history_["validation"].notna().all()


def test_it_comes_back_from_disk(model: DoctorNet, X: pd.DataFrame, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert isinstance(loaded, DoctorNet)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.weights_, model.weights_)


class Stopped(Exception):  # nothing is wrong
    pass


def test_a_fit_that_is_stopped_in_either_stage_goes_on_to_the_same_bits(
    made: Simulation, X: pd.DataFrame, tmp_path: Path
) -> None:
    epochs = 0

    def in_the_first(model: object) -> None:  # noqa: ARG001
        nonlocal epochs
        epochs += 1
        if epochs == 3:
            raise Stopped

    def in_the_second(model: object) -> None:  # noqa: ARG001
        if list(tmp_path.glob("*-weights*")):
            raise Stopped

    model = DoctorNet(variant="IWDN", weight_epochs=4, checkpoint=str(tmp_path), **QUICK)
    for stop, files in ((in_the_first, 1), (in_the_second, 2)):
        with pytest.raises(Stopped), watch_epochs(stop):
            model.fit(X, made.crowd)
        assert len(list(tmp_path.iterdir())) == files
    whole = DoctorNet(variant="IWDN", weight_epochs=4, **QUICK).fit(X, made.crowd)
    np.testing.assert_array_equal(model.fit(X, made.crowd).predict_proba(X), whole.predict_proba(X))
    assert model.history_["loss"].tolist() == whole.history_["loss"].tolist()


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ({"variant": "BIWDN"}, "variant"),
        ({"head_l2": -1.0}, "head_l2 must not be negative"),
        ({"committee": 0}, "committee and weight_epochs must be 1 or more"),
        ({"weight_epochs": 0}, "committee and weight_epochs must be 1 or more"),
        ({"weight_learning_rate": 0.0}, "positive"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    bad: dict[str, Any], match: str, made: Simulation, X: pd.DataFrame
) -> None:
    with pytest.raises(UsageError, match=match):
        DoctorNet(**bad).fit(X, made.crowd)
