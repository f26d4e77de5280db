"""What is peculiar to the members of the Dawid-Skene family that climb something other than a plain likelihood."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma, gammaln

from wisecrowd import BWA, EBCC, IBCC, MACE, Crowd, DawidSkene, DSWorkerClusters, FastDS, load_dataset, simulate_crowd
from wisecrowd.em.initialization import compute_vote_shares
from wisecrowd.errors import NotConverged
from wisecrowd.evaluate.metrics import accuracy

MADE = simulate_crowd(n_tasks=300, n_workers=20, n_classes=3, votes_per_task=5, random_state=1)


def scored(method: Any, folder: Path) -> float:
    data = load_dataset(folder, duplicates="distinct")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        return accuracy(data.truth, method.fit(data.crowd))


class TestFastDS:
    def test_it_ends_where_no_decision_changes(self) -> None:
        fitted = FastDS().fit(MADE.crowd)
        again = FastDS(max_iter=1, tol=0).fit(MADE.crowd, start=np.eye(3)[fitted.posterior_.argmax(axis=1)])
        assert (again.labels_ == fitted.labels_).all()
        assert fitted.n_iter_ < DawidSkene(accelerate=False).fit(MADE.crowd).n_iter_

    def test_the_final_posterior_is_soft(self) -> None:
        posterior = FastDS().fit(MADE.crowd).posterior_
        assert ((posterior > 0.01) & (posterior < 0.99)).any()

    def test_the_hybrid_is_nearer_to_the_soft_answer(self) -> None:
        soft = DawidSkene().fit(MADE.crowd).labels_
        hybrid = FastDS(hybrid=True).fit(MADE.crowd).labels_
        assert (hybrid == soft).mean() >= (FastDS().fit(MADE.crowd).labels_ == soft).mean()

    @pytest.mark.data
    @pytest.mark.parametrize(
        ("name", "wanted"), [("bluebirds", 0.8796), ("dog", 0.8401), ("rte", 0.9275), ("product_matching", 0.9354)]
    )
    def test_reference_accuracies(self, name: str, wanted: float, data_folder: Path) -> None:
        found = scored(FastDS(smoothing=0.01, diagonal=0, ties="first"), data_folder / name)
        assert found == pytest.approx(wanted, abs=0.005)


class TestIBCC:
    def test_the_bound_lies_below_the_evidence_and_is_the_textbook_formula(self) -> None:
        crowd = Crowd.from_triples([(0, "a", 0), (0, "b", 0), (1, "a", 1), (1, "b", 0)])
        fitted = IBCC(tol=1e-13).fit(crowd)
        assert fitted.trace_[-1] <= self.evidence(crowd) + 1e-9

    @staticmethod
    def evidence(crowd: Crowd) -> float:
        """log p(votes) with all parameters integrated out: a sum over all truths."""
        total = -np.inf
        for truth in itertools.product(range(2), repeat=crowd.n_tasks):
            classes = np.bincount(truth, minlength=2)
            value = gammaln(2) - gammaln(2 + crowd.n_tasks) + (gammaln(1 + classes) - gammaln(1)).sum()
            for worker in range(crowd.n_workers):
                mine = crowd.worker == worker
                for k in range(2):
                    prior = np.array([4.0, 1.0]) if k == 0 else np.array([1.0, 4.0])
                    label_probs = crowd.label[mine & (np.asarray(truth)[crowd.task] == k)]
                    counts = np.bincount(label_probs, minlength=2)
                    value += gammaln(5) - gammaln(5 + counts.sum()) + (gammaln(prior + counts) - gammaln(prior)).sum()
            total = np.logaddexp(total, value)
        return float(total)

    def test_it_is_a_fixed_point_of_the_published_updates(self) -> None:
        crowd = MADE.crowd
        fitted = IBCC(tol=1e-14, max_iter=5000).fit(crowd)
        q = fitted.posterior_
        n = np.zeros((crowd.n_workers, 3, 3))
        np.add.at(n.transpose(0, 2, 1), (crowd.worker, crowd.label), q[crowd.task])
        beta = n + 1 + 3 * np.eye(3)
        log_pi = digamma(beta) - digamma(beta.sum(axis=2, keepdims=True))
        logit = np.tile(digamma(1 + q.sum(axis=0)), (crowd.n_tasks, 1))
        np.add.at(logit, crowd.task, log_pi[crowd.worker, :, crowd.label])
        wanted = np.exp(logit - logit.max(axis=1, keepdims=True))
        np.testing.assert_allclose(q, wanted / wanted.sum(axis=1, keepdims=True), atol=1e-5)
        np.testing.assert_allclose(fitted.confusion_, beta / beta.sum(axis=2, keepdims=True), atol=1e-5)


class TestMACE:
    def test_restarts_really_differ(self) -> None:
        table = MACE(n_init=5).fit(MADE.crowd).restarts_
        assert table["objective"].nunique() > 1
        assert (
            MACE(n_init=5, random_state=1).fit(MADE.crowd).restarts_["objective"].tolist()
            != table["objective"].tolist()
        )

    @pytest.mark.parametrize("variational", [True, False])
    def test_spammers_have_no_competence(self, variational: bool) -> None:
        made = simulate_crowd(n_tasks=600, n_workers=20, n_classes=3, votes_per_task=8, random_state=3,
                              workers={"expert": 0.6, "spammer": 0.2, "one-button": 0.2})  # fmt: skip
        competence = MACE(variational=variational).fit(made.crowd).workers_["competence"]
        assert competence[made.kind == "expert"].min() > 0.6
        assert competence[made.kind != "expert"].max() < 0.3

    def test_recovery_improves_with_data(self) -> None:
        errors = []
        for n_tasks in (60, 3000):
            made = simulate_crowd(n_tasks=n_tasks, n_workers=12, n_classes=4, votes_per_task=6, random_state=5,
                                  workers={"noisy": 1.0})  # fmt: skip
            knows = (4 * made.accuracy - 1) / 3  # a noisy worker knows, or guesses evenly
            errors.append(float((MACE().fit(made.crowd).workers_["competence"] - knows).abs().mean()))
        assert errors[1] < min(errors[0], 0.03)

    @pytest.mark.data
    @pytest.mark.parametrize(
        ("name", "wanted"),
        [("bluebirds", 0.8611), ("dog", 0.8302), ("rte", 0.9263), ("web_search", 0.8387), ("d_possent", 0.9570),
         ("sentiment_polarity", 0.9178), ("labelme", 0.7790)],
    )  # fmt: skip
    def test_reference_accuracies(self, name: str, wanted: float, data_folder: Path) -> None:
        assert scored(MACE(), data_folder / name) == pytest.approx(wanted, abs=0.005)


class TestBWA:
    def test_the_weighted_average_is_at_rest(self) -> None:
        crowd = MADE.crowd
        fitted = BWA(tol=1e-15, max_iter=5000).fit(crowd)
        y = np.eye(3)[crowd.label]
        v, mean = fitted.precision_, None
        z = compute_vote_shares(crowd)
        for _ in range(300):  # the published updates, written out vote by vote
            mean = z.mean(axis=0)
            top = np.tile(mean, (crowd.n_tasks, 1))
            bottom = np.ones((crowd.n_tasks, 3))
            np.add.at(top, crowd.task, v[crowd.worker] * y)
            np.add.at(bottom, crowd.task, v[crowd.worker])
            z = top / bottom
        np.testing.assert_allclose(fitted.posterior_, z / z.sum(axis=1, keepdims=True), atol=1e-5)

    def test_better_workers_are_more_precise(self) -> None:
        made = simulate_crowd(n_tasks=500, n_workers=20, n_classes=3, votes_per_task=6, random_state=0)
        precision = BWA().fit(made.crowd).workers_["precision"]
        assert precision.corr(made.accuracy, method="spearman") > 0.8


class TestEBCC:
    def test_without_subtypes_it_is_ibcc_with_an_empirical_class_prior(self) -> None:
        # α is the total of vote shares: with so many tasks it hardly matters.
        one = EBCC(n_subtypes=1, n_init=1).fit(MADE.crowd)
        assert (one.labels_ == IBCC().fit(MADE.crowd).labels_).mean() > 0.98

    def test_the_best_bound_of_all_starts_is_kept(self) -> None:
        fitted = EBCC(n_init=4).fit(MADE.crowd[:100])
        assert fitted.trace_[-1] == pytest.approx(fitted.restarts_["objective"].max())

    @pytest.mark.data
    @pytest.mark.parametrize(
        ("name", "wanted"), [("weather_cf", 0.883), ("dog", 0.840), ("rte", 0.931), ("d_possent", 0.961)]
    )
    def test_published_accuracies(self, name: str, wanted: float, data_folder: Path) -> None:
        assert scored(EBCC(n_init=10), data_folder / name) == pytest.approx(wanted, abs=0.004)


class TestDSWorkerClusters:
    def test_planted_groups_are_found(self) -> None:
        made = simulate_crowd(n_tasks=400, n_workers=60, n_classes=3, votes_per_task=6, random_state=2,
                              workers={"expert": 0.5, "spammer": 0.5})  # fmt: skip
        fitted = DSWorkerClusters(n_clusters=2).fit(made.crowd)
        table = pd.crosstab(made.kind, fitted.groups_).to_numpy()
        assert table.max(axis=1).sum() == 60

    def test_one_group_is_one_matrix_for_all(self) -> None:
        fitted = DSWorkerClusters(n_clusters=1).fit(MADE.crowd)
        assert np.ptp(fitted.confusion_, axis=0).max() < 1e-9

    def test_it_helps_where_workers_have_few_labels(self) -> None:
        made = simulate_crowd(n_tasks=400, n_workers=400, n_classes=4, votes_per_task=5, random_state=4,
                              workers={"expert": 0.4, "spammer": 0.6})  # fmt: skip
        grouped = accuracy(made.truth, DSWorkerClusters(n_clusters=2).fit(made.crowd))
        assert grouped > accuracy(made.truth, DawidSkene(smoothing=0.01, diagonal=0).fit(made.crowd))
