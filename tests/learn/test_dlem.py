from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wisecrowd
from wisecrowd import DLEM, Crowd, MajorityVote
from wisecrowd.em.classifier_prior import PROBABILITY_FLOOR
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.metrics import accuracy
from wisecrowd.nn.network_classifier import NetworkClassifier
from wisecrowd.utils import progress

torch = pytest.importorskip("torch")

#: A crowd with features, made the same in every process.
MADE = """
import numpy as np
import pandas as pd
from wisecrowd import DLEM, simulate_crowd

made = simulate_crowd(n_tasks=300, n_workers=12, n_classes=3, votes_per_task=3, random_state=4)
crowd = made.crowd
codes = crowd.classes.get_indexer(made.truth.reindex(crowd.tasks))
X = pd.DataFrame(2 * np.eye(3)[codes] + np.random.default_rng(0).normal(size=(300, 3)), index=crowd.tasks)
"""
_space: dict[str, Any] = {}
exec(MADE, _space)
made, crowd, X = _space["made"], _space["crowd"], _space["X"]


def bits(model: DLEM) -> tuple[bytes, ...]:
    arrays = (model.posterior_, model.tally_, model.trace_, model.task_prior_, model.predict_proba(X))
    return tuple(array.tobytes() for array in arrays)


@pytest.fixture(scope="module")
def fitted() -> DLEM:
    return DLEM().fit(X, crowd)


def test_it_beats_the_votes_on_the_tasks_and_answers_for_new_ones(fitted: DLEM) -> None:
    assert accuracy(made.truth, fitted) > accuracy(made.truth, MajorityVote().fit(crowd)) + 0.02
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=500)
    new = 2 * np.eye(3)[truth] + rng.normal(size=(500, 3))
    assert fitted.score(pd.DataFrame(new), crowd.classes[truth]) > 0.8
    assert fitted.n_iter_ == 50


def test_workers_are_scored_against_the_posterior_with_pseudo_votes_above_and_below(fitted: DLEM) -> None:
    wanted = np.full((12, 3, 3), 0.1) + np.eye(3)
    for task, worker, label in zip(crowd.task, crowd.worker, crowd.label, strict=True):
        wanted[worker, :, label] += fitted.posterior_[task]
    wanted /= wanted.sum(axis=2, keepdims=True)
    assert fitted.confusion_ == pytest.approx(wanted)
    assert fitted.posterior_.sum(axis=1) == pytest.approx(1)
    assert fitted.task_prior_ == pytest.approx(
        fitted._predict_proba(X.to_numpy()), abs=1e-6
    )  # dropout is off in E-steps
    assert fitted.task_prior_.min() >= PROBABILITY_FLOOR / 2


def test_the_first_posterior_follows_from_the_votes_through_an_m_step() -> None:
    model = DLEM(max_iter=1, pretraining=3).fit(X, crowd)
    shares = np.zeros((300, 3))
    np.add.at(shares, (crowd.task, crowd.label), 1)
    shares /= shares.sum(axis=1, keepdims=True)
    confusion = np.full((12, 3, 3), 0.1) + np.eye(3)
    for task, worker, label in zip(crowd.task, crowd.worker, crowd.label, strict=True):
        confusion[worker, :, label] += shares[task]
    confusion /= confusion.sum(axis=2, keepdims=True)
    posterior = NetworkClassifier("mlp", epochs=3, l2=1.0).fit(X.to_numpy(), shares).predict_proba(X.to_numpy())
    for task, worker, label in zip(crowd.task, crowd.worker, crowd.label, strict=True):
        posterior[task] *= confusion[worker, :, label]
    assert model.posterior_ == pytest.approx(posterior / posterior.sum(axis=1, keepdims=True), abs=1e-6)


def test_every_later_step_trains_as_many_epochs_as_asked() -> None:
    model = DLEM(max_iter=4, pretraining=2, epochs_per_step=3).fit(X, crowd)
    assert len(model.classifier_.history) == 2 + 3 * 3


def test_same_seed_same_bits(fitted: DLEM) -> None:
    before = torch.get_rng_state()
    again = DLEM().fit(X, crowd)
    assert torch.equal(torch.get_rng_state(), before)
    assert bits(again) == bits(fitted)
    assert bits(DLEM(random_state=1).fit(X, crowd)) != bits(fitted)


def test_gold_is_kept_and_tasks_without_votes_are_expected_from_features() -> None:
    rows = pd.DataFrame(
        {"task": crowd.tasks[crowd.task], "worker": crowd.workers[crowd.worker], "label": crowd.classes[crowd.label]}
    )
    silent = set(crowd.tasks[:20])
    some = Crowd.from_frame(rows[~rows["task"].isin(silent)], tasks=crowd.tasks, classes=crowd.classes)
    gold = made.truth.loc[crowd.tasks[20:60]]
    model = DLEM(max_iter=10).fit(X, some, truth=gold)
    assert (model.labels_.loc[gold.index] == gold).all()
    assert model.posterior_[:20] == pytest.approx(model.task_prior_[:20])


def test_cross_fitting_and_shrinkage() -> None:
    model = DLEM(cv=3, shrinkage=True, max_iter=30, learning_rate=0.01).fit(X, crowd)
    assert accuracy(made.truth, model) > 0.9
    assert len(model.classifier_.history) == 5 + 29  # the network for new tasks trains as long as those of the folds
    assert model.score(X, made.truth) > 0.75


@pytest.mark.parametrize(
    "classifier",
    [
        "linear",
        torch.nn.Linear(3, 3),
        lambda shape, n: torch.nn.Linear(shape[0], n),
        NetworkClassifier("mlp", dropout=0.1, learning_rate=0.01),
    ],
)
def test_other_networks(classifier: Any) -> None:
    model = DLEM(classifier=classifier, max_iter=15, learning_rate=0.01).fit(X, crowd)
    assert accuracy(made.truth, model) > 0.75


def test_images() -> None:
    rng = np.random.default_rng(0)
    codes = crowd.classes.get_indexer(made.truth.reindex(crowd.tasks))
    pictures = rng.normal(size=(300, 8, 8)) + codes[:, None, None]
    sized = Crowd.from_frame(
        pd.DataFrame({"task": crowd.task, "worker": crowd.worker, "label": crowd.label}), tasks=range(300)
    )
    model = DLEM(classifier="cnn", max_iter=3, pretraining=3, hidden=16).fit(pictures, sized)
    assert (model.predict(pictures) == codes).mean() > 0.7


def test_it_is_a_scikit_learn_classifier_that_can_be_kept(fitted: DLEM, tmp_path: Path) -> None:
    assert clone(DLEM(hidden=7)).hidden == 7
    fitted.save(tmp_path / "model")
    loaded: Any = wisecrowd.load(tmp_path / "model")
    assert loaded.predict_proba(X).tobytes() == fitted.predict_proba(X).tobytes()
    assert pickle.loads(pickle.dumps(fitted)).predict_proba(X).tobytes() == fitted.predict_proba(X).tobytes()
    numbered = Crowd.from_frame(
        pd.DataFrame({"task": crowd.task, "worker": crowd.worker, "label": crowd.label}), tasks=range(300)
    )
    scores = cross_val_score(make_pipeline(StandardScaler(), DLEM(max_iter=20)), X.to_numpy(), numbered, cv=3)
    assert scores.min() > 0.45  # of the votes, of which two in three are right


@pytest.mark.parametrize(
    "wrong", [{"pretraining": 0}, {"epochs_per_step": 0}, {"learning_rate": 0.0}, {"dropout": 1.0}]
)
def test_bad_settings_are_errors(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        DLEM(**wrong).fit(X, crowd)


# ---------------------------------------------------------------------- stopping and going on


class Interrupted(Exception):
    pass


@pytest.mark.parametrize(
    "options", [{}, {"cv": 2, "shrinkage": True}, {"classifier": "logistic"}, {"tol": 0.004}], ids=str
)
def test_an_interrupted_fit_resumes_to_the_same_bits(options: dict[str, Any], tmp_path: Path) -> None:
    options = {"max_iter": 12} | options
    whole = DLEM(**options).fit(X, crowd)
    taken: list[int] = []

    def stop_at(step: int) -> Any:
        def listener(what: str, at: int, *_: Any) -> None:
            if what == "DLEM" and at == step:
                raise Interrupted

        return listener

    for step in (2, 3):
        with pytest.raises(Interrupted), progress.listen(stop_at(step)):
            DLEM(**options, checkpoint=str(tmp_path)).fit(X, crowd)
    (kept,) = tmp_path.iterdir()
    assert kept.suffix == ".npz"
    resumed = DLEM(**options, checkpoint=str(tmp_path))
    assert bits(resumed.fit(X, crowd)) == bits(whole)
    assert resumed.converged_ == whole.converged_
    with progress.listen(lambda what, at, total, detail: taken.append(at) if what == "network" else None):
        again = DLEM(**options, checkpoint=str(tmp_path)).fit(X, crowd)
    assert bits(again) == bits(whole)
    if whole.n_iter_ == 12 and not options.get("cv"):
        assert not taken  # it was finished: nothing is trained again


def test_a_killed_fit_resumes_to_the_same_bits(tmp_path: Path) -> None:
    script = f"""{MADE}
import sys, time
from wisecrowd.utils import progress

def listener(what, step, total, detail):
    if what == "network" and step == 5 + 6:
        print("waiting to be killed", flush=True)
        time.sleep(600)

with progress.listen(listener):
    DLEM(max_iter=15, checkpoint=sys.argv[1]).fit(X, crowd)
"""
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting to be killed\n"
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("dlem-")
    trained: list[int] = []
    with progress.listen(lambda what, at, total, detail: trained.append(at) if what == "network" else None):
        resumed = DLEM(max_iter=15, checkpoint=str(tmp_path)).fit(X, crowd)
    assert trained == list(range(trained[0], 5 + 15))  # the epochs that were not yet kept, and no other
    assert 5 < trained[0] <= 5 + 6
    assert list(tmp_path.iterdir()) == [kept]  # the same fit, the same file
    assert bits(resumed) == bits(DLEM(max_iter=15).fit(X, crowd))


def test_another_fit_has_a_checkpoint_of_its_make_worker_parameters(tmp_path: Path) -> None:
    first = DLEM(max_iter=2, checkpoint=str(tmp_path)).fit(X, crowd)
    other = DLEM(max_iter=2, checkpoint=str(tmp_path), hidden=16).fit(X, crowd)
    features = DLEM(max_iter=2, checkpoint=str(tmp_path)).fit(X * [1, 1, 1.1] + X**2, crowd)
    votes = DLEM(max_iter=2, checkpoint=str(tmp_path)).fit(X.iloc[:200], crowd[np.arange(200)])
    assert len(list(tmp_path.iterdir())) == 4
    assert len({model.trace_[-1] for model in (first, other, features, votes)}) == 4


def test_a_classifier_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be saved"):
        DLEM(classifier=LogisticRegression(), max_iter=2, checkpoint=str(tmp_path)).fit(X, crowd)
