from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln

from wisecrowd import IBCC, Crowd, DawidSkene, load_dataset, simulate_crowd
from wisecrowd.em.initialization import compute_vote_shares
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.metrics import accuracy, log_loss

TINY = Crowd.from_triples(
    [("t1", "ann", "a"), ("t1", "bob", "a"), ("t2", "ann", "b"), ("t2", "bob", "b"), ("t2", "cy", "a"), ("t3", "bob", "a"),
     ("t4", "ann", "b"), ("t4", "cy", "b")]
)  # fmt: skip


def log_evidence(crowd: Crowd, before: np.ndarray, class_votes: float) -> tuple[float, np.ndarray]:
    """The exact evidence, and the exact posterior of every task: all truths summed, all parameters integrated out."""
    n_tasks, n_classes = crowd.n_tasks, crowd.n_classes
    logs, truths = [], list(itertools.product(range(n_classes), repeat=n_tasks))
    for truth in truths:
        counts = np.zeros((crowd.n_workers, n_classes, n_classes))
        np.add.at(counts, (crowd.worker, np.array(truth)[crowd.task], crowd.label), 1)
        classes = np.bincount(truth, minlength=n_classes)
        total = gammaln(n_classes * class_votes) - gammaln(n_classes * class_votes + n_tasks)
        total += (gammaln(class_votes + classes) - gammaln(class_votes)).sum()
        total += (gammaln(before + counts) - gammaln(before)).sum()
        total -= (gammaln(before.sum(axis=1) + counts.sum(axis=2)) - gammaln(before.sum(axis=1))).sum()
        logs.append(total)
    weights = np.exp(np.array(logs) - max(logs))
    posterior = np.zeros((n_tasks, n_classes))
    for truth, weight in zip(truths, weights, strict=True):
        posterior[np.arange(n_tasks), truth] += weight
    return max(logs) + np.log(weights.sum()), posterior / weights.sum()


def test_the_bound_is_below_the_evidence_and_near_it() -> None:
    exact, posterior = log_evidence(TINY, 1 + 3 * np.eye(2), 1.0)
    fitted = IBCC(tol=1e-12).fit(TINY)
    assert fitted.trace_[-1] < exact
    assert fitted.trace_[-1] > exact - 1.5
    # Mean field is too sure, but it is sure of the right class.
    assert (fitted.posterior_.argmax(axis=1) == posterior.argmax(axis=1)).all()
    assert (fitted.posterior_.max(axis=1) > posterior.max(axis=1)).all()
    np.testing.assert_allclose(fitted.posterior_, posterior, atol=0.2)


def test_without_votes_to_learn_from_the_bound_is_the_evidence() -> None:
    """One task and one vote: q(z) is exact but for the dependence between z and π, and gold removes even that."""
    crowd = Crowd.from_triples([("t", "w", "a")], classes=["a", "b"])
    fitted = IBCC(tol=1e-14).fit(crowd, truth={"t": "a"})
    assert fitted.trace_[-1] == pytest.approx(np.log(0.5 * 4 / 5))  # α / 2α · β_aa / β_a·


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("prior", ["estimate", "uniform", [0.2, 0.3, 0.5]])
def test_the_bound_never_falls(accelerate: bool, prior: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wisecrowd.em.loop.assert_monotone", True)
    for seed in range(5):
        crowd = simulate_crowd(60, 12, 3, votes_per_task=3, random_state=seed).crowd
        IBCC(accelerate=accelerate, prior=prior, tol=1e-12, max_iter=2000).fit(crowd)


def test_it_is_the_plain_iteration_on_dense_tables() -> None:
    from scipy.special import digamma

    crowd = simulate_crowd(40, 6, 3, votes_per_task=4, random_state=1).crowd
    before, posterior = 1 + 3 * np.eye(3), compute_vote_shares(crowd)
    for _ in range(5):
        counts = np.zeros((crowd.n_workers, 3, 3))
        np.add.at(counts.transpose(0, 2, 1), (crowd.worker, crowd.label), posterior[crowd.task])
        logs = digamma(before + counts) - digamma((before + counts).sum(axis=2, keepdims=True))
        joint = np.tile(digamma(1 + posterior.sum(axis=0)), (crowd.n_tasks, 1))
        np.add.at(joint, crowd.task, logs[crowd.worker, :, crowd.label])
        posterior = np.exp(joint - joint.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
    fitted = IBCC(max_iter=4, tol=0, accelerate=False).fit(crowd)
    np.testing.assert_allclose(fitted.posterior_, posterior, atol=1e-10)


def test_the_matrices_shown_are_posterior_means() -> None:
    made = simulate_crowd(50, 5, 3, votes_per_task=4, random_state=2)
    fitted = IBCC().fit(made.crowd, truth=made.truth)
    counts = np.zeros((5, 3, 3))
    np.add.at(counts, (made.crowd.worker, made.truth_codes[made.crowd.task], made.crowd.label), 1)
    wanted = counts + 1 + 3 * np.eye(3)
    np.testing.assert_allclose(fitted.confusion_, wanted / wanted.sum(axis=2, keepdims=True))


def test_with_many_labels_beliefs_become_estimates() -> None:
    gaps = []
    for n_tasks in (60, 600, 6000):
        made = simulate_crowd(n_tasks, 10, 3, votes_per_task=5, workers=["noisy(0.7)"] * 10, random_state=3)
        believed, estimated = IBCC().fit(made.crowd), DawidSkene(smoothing=0, diagonal=0).fit(made.crowd)
        gaps.append(np.abs(believed.confusion_ - estimated.confusion_).mean())
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.01
    assert np.abs(believed.confusion_ - made.confusion).mean() < 0.02


def test_it_knows_how_little_it_knows_of_workers_with_few_labels() -> None:
    losses = []
    for method in (IBCC(), DawidSkene(smoothing=0.01, diagonal=0)):
        made = [simulate_crowd(300, 100, 3, votes_per_task=3, random_state=seed) for seed in range(4)]
        losses.append(np.mean([log_loss(one.truth, method.fit(one.crowd)) for one in made]))
    assert losses[0] < losses[1] / 2


@pytest.mark.parametrize("wrong", [{"smoothing": 0}, {"class_votes": 0}])
def test_zeros_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="must be positive"):
        IBCC(**wrong).fit(TINY)


#: The authors' notebooks, three digits: Li, Rubinstein and Cohn (2019).
PUBLISHED = {
    "weather_cf": 0.883, "weather_amt": 0.857, "music_genre": 0.790, "sentiment_polarity": 0.915, "zencrowd_all": 0.795,
    "zencrowd_in": 0.770, "product_matching": 0.938, "d_possent": 0.960, "face_sentiment": 0.640, "adult_content2": 0.745,
    "bluebirds": 0.889, "dog": 0.839, "rte": 0.928, "trec2011": 0.705, "web_search": 0.751,
}  # fmt: skip


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_accuracies(name: str, data_folder: Path) -> None:
    data = load_dataset(data_folder / name, duplicates="distinct")
    assert accuracy(data.truth, IBCC().fit(data.crowd)) == pytest.approx(PUBLISHED[name], abs=0.0006)


@pytest.mark.data
@pytest.mark.parametrize(("name", "published"), [("product_matching", 0.8391), ("d_possent", 0.9600)])
def test_with_even_classes_it_is_the_published_mean_field_method(
    name: str, published: float, data_folder: Path
) -> None:
    """VI-MF in Zheng et al. (2017), table 6: pseudo-votes 2 on the diagonal and 1 off it."""
    data = load_dataset(data_folder / name, duplicates="distinct")
    found = IBCC(prior="uniform", smoothing=1, diagonal=1).fit(data.crowd)
    assert accuracy(data.truth, found) == pytest.approx(published, abs=0.003)
