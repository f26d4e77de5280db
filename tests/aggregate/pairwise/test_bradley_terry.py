"""Bradley–Terry: closed forms, other programs' figures, intervals, covariates and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import BradleyTerry, Comparisons, JudgeAwareBradleyTerry
from wisecrowd.errors import DataWarning, InputError, NoPosterior, UsageError
from wisecrowd.simulate.comparisons import simulate_comparisons


def test_two_items_have_the_log_odds_of_their_wins() -> None:
    votes = [(worker, "a", "b", "a" if worker < 7 else "b") for worker in range(10)]
    fitted = BradleyTerry(ridge=0).fit(votes)
    assert fitted.score_[0] - fitted.score_[1] == pytest.approx(np.log(7 / 3))
    assert fitted.win_probability("a", "b") == pytest.approx(0.7)


def test_davidson_ties_of_two_items() -> None:
    # With 4 wins, 1 loss and 5 ties, P(win) / P(loss) = 4 and P(tie) = 1/2 are fitted exactly.
    outcomes = ["a"] * 4 + ["b"] + ["tie"] * 5
    fitted = BradleyTerry(ridge=0).fit([(n, "a", "b", label) for n, label in enumerate(outcomes)])
    probs = fitted.predict_proba([("x", "a", "b", "a")]).iloc[0]
    assert probs.round(6).to_dict() == {"left": 0.4, "right": 0.1, "tie": 0.5}


def test_ties_as_half_wins_equal_duplicated_wins() -> None:
    votes = [(0, "a", "b", "tie"), (1, "a", "b", "a"), (2, "b", "c", "b"), (3, "c", "a", "tie")]
    doubled = []
    for number, (worker, left, right, label) in enumerate(votes):
        labels = ("left", "right") if label == "tie" else (label, label)
        doubled += [((worker, copy), left, right, one) for copy, one in enumerate(labels)]
        assert len(doubled) == 2 * number + 2
    doubled = [(str(worker), *rest) for worker, *rest in doubled]
    scores = BradleyTerry(ridge=0, ties="half").fit(votes).score_
    assert np.allclose(scores, BradleyTerry(ridge=0).fit(doubled).score_, atol=1e-8)


def test_the_optimum_of_a_textbook_iteration() -> None:
    """Zermelo's iteration p_i = W_i / Σ_j N_ij / (p_i + p_j), run for long."""
    made = simulate_comparisons(n_items=6, n_workers=4, votes_per_worker=60, tie_utility=None, random_state=3)
    pairs = made.comparisons.pair_counts
    wins = np.zeros((6, 6))
    wins[pairs.first, pairs.second] += pairs.first_wins
    wins[pairs.second, pairs.first] += pairs.second_wins
    strength = np.ones(6)
    for _ in range(20_000):
        total = (wins + wins.T) / (strength[:, None] + strength[None])
        strength = wins.sum(axis=1) / total.sum(axis=1)
        strength /= np.exp(np.log(strength).mean())
    fitted = BradleyTerry(ridge=0).fit(made.comparisons)
    assert np.allclose(fitted.score_, np.log(strength), atol=1e-8)


def test_position_is_estimated() -> None:
    made = simulate_comparisons(n_items=8, n_workers=20, votes_per_worker=100, random_state=0)
    comparisons = made.comparisons
    # Half of the outcomes are replaced by "left".
    outcome = np.where(np.random.default_rng(0).random(comparisons.n_votes) < 0.5, 0, comparisons.outcome)
    leaning = Comparisons(comparisons.left, comparisons.right, outcome, items=comparisons.items)
    assert BradleyTerry(position=True).fit(leaning).position_ > 0.5
    assert BradleyTerry().fit(leaning).position_ == 0


@pytest.mark.parametrize("interval", ["fisher", "sandwich"])
def test_intervals_cover_the_true_scores(interval: str) -> None:
    """Over 20 simulated arenas, 90 % intervals cover 85 to 95 % of the scores."""
    hits = []
    for seed in range(20):
        made = simulate_comparisons(n_items=12, n_workers=30, votes_per_worker=60, random_state=seed)
        method = BradleyTerry(interval=interval)  # type: ignore[arg-type]  # one of the literals
        table = method.fit(made.comparisons).scores_.loc[made.scores.index]
        hits.append(table["lower"].le(made.scores) & table["upper"].ge(made.scores))
        rank = made.scores.rank(ascending=False)
        assert (table["rank_low"].le(rank) & table["rank_high"].ge(rank)).mean() > 0.9
    assert 0.85 <= np.mean(hits) <= 0.95


def test_bootstrap_and_sandwich_agree() -> None:
    made = simulate_comparisons(n_items=8, n_workers=40, votes_per_worker=40, lean_spread=0.5, random_state=1)
    sandwich, bootstrap = (
        BradleyTerry(interval=interval, n_bootstrap=100).fit(made.comparisons).scores_["standard_error"]  # type: ignore[arg-type]
        for interval in ("sandwich", "bootstrap")
    )
    assert (bootstrap / sandwich).between(0.75, 1.3).all()


def test_duplicated_comparisons_halve_the_fisher_variance_only() -> None:
    made = simulate_comparisons(n_items=6, n_workers=30, votes_per_worker=40, random_state=5)
    once, twice = made.comparisons, Comparisons.concat([made.comparisons] * 2)

    def variances(interval: str) -> list[float]:
        fits = [BradleyTerry(ridge=0, interval=interval).fit(part) for part in (once, twice)]  # type: ignore[arg-type]
        return [float(np.diagonal(fitted.covariance_).mean()) for fitted in fits]  # type: ignore[arg-type]

    fisher, sandwich = variances("fisher"), variances("sandwich")
    assert fisher[1] == pytest.approx(fisher[0] / 2, rel=1e-4)
    assert sandwich[1] == pytest.approx(sandwich[0], rel=1e-4)


def test_a_covariate_is_separated_from_quality() -> None:
    """Judges who like length: the coefficient is found, and the scores no longer follow the length."""
    rng = np.random.default_rng(0)
    n, items = 4000, [f"m{number}" for number in range(6)]
    quality, length = np.linspace(-1, 1, 6), rng.normal(size=(20, 6))
    task, left = rng.integers(0, 20, n), rng.integers(0, 6, n)
    right = (left + rng.integers(1, 6, n)) % 6
    logit = quality[left] - quality[right] + 0.8 * (length[task, left] - length[task, right])
    outcome = (rng.random(n) > 1 / (1 + np.exp(-logit))).astype(int)
    comparisons = Comparisons(left, right, outcome, items=pd.Index(items), task=task, tasks=pd.RangeIndex(20))
    table = pd.DataFrame(
        {"length": length.ravel()}, index=pd.MultiIndex.from_product([range(20), items], names=["task", "item"])
    )
    fitted = BradleyTerry().fit(comparisons, table)
    assert fitted.covariate_coefficients_ == pytest.approx([0.8], abs=0.12)
    assert np.allclose(fitted.score_, quality, atol=0.2)
    with pytest.raises(InputError, match=r"have no row for"):
        BradleyTerry().fit(comparisons, table.iloc[:-1])
    with pytest.raises(InputError, match="indexed by item, or by task and item"):
        BradleyTerry().fit(comparisons, length)


def test_disconnected_items_are_named() -> None:
    votes = [("ann", "a", "b", "a"), ("ann", "c", "d", "c"), ("bob", "a", "b", "b"), ("bob", "c", "d", "d")]
    with pytest.warns(DataWarning, match="the items form 2 groups without comparisons between them"):
        fitted = BradleyTerry().fit(votes)
    assert fitted.scores_["component"].sort_index().tolist() == [0, 0, 1, 1]


def test_an_item_that_always_wins_has_a_finite_score() -> None:
    fitted = BradleyTerry().fit([("ann", "a", "b", "a"), ("ann", "b", "c", "b"), ("ann", "c", "b", "c")])
    assert fitted.scores_.index[0] == "a"
    assert np.isfinite(fitted.score_).all()


def test_classes_of_results() -> None:
    fitted = BradleyTerry().fit([("ann", "a", "b", "a"), ("bob", "b", "a", "tie")])
    assert not hasattr(fitted, "posterior_")
    with pytest.raises(NoPosterior, match="use scores_ and workers_"):
        _ = fitted.confusion_
    with pytest.raises(UsageError, match="does not rate workers; use crowd-bradley-terry"):
        _ = fitted.workers_
    assert fitted.labels_.to_dict() == {"a": 1, "b": 2}
    assert "<td>" in fitted._repr_html_()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"ridge": -1.0}, "ridge must be 0 or more"), ({"level": 1.0}, "between 0 and 1"), ({"ties": "drop"}, "ties"),
     ({"interval": "exact"}, "interval"), ({"interval": "bootstrap", "n_bootstrap": 1}, "n_bootstrap must be 2 or more")],
)  # fmt: skip
def test_impossible_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        BradleyTerry(**options).fit([("ann", "a", "b", "a"), ("bob", "a", "b", "b")])  # type: ignore[arg-type]


def test_a_crowd_of_votes_is_refused_with_advice() -> None:
    from wisecrowd import Crowd

    with pytest.raises(InputError, match=r"takes comparisons of two items; got Crowd"):
        BradleyTerry().fit(Crowd.from_triples([("t", "ann", "x")]))  # type: ignore[arg-type]  # the mistake
    with pytest.raises(
        InputError, match=r"rates the workers, and these comparisons have no worker ids; use bradley-terry"
    ):
        JudgeAwareBradleyTerry().fit({"left": ["a"], "right": ["b"], "label": ["a"]})


@pytest.mark.data
def test_the_published_ranking_of_llmfao(answer_types_folder: Path) -> None:
    """Ustalov (2023): Spearman correlation .731 between the Bradley–Terry ranks by people and by GPT-4, 59 models, 13 prompts."""
    from scipy.stats import spearmanr

    frame = pd.read_parquet(answer_types_folder / "llmfao" / "comparisons.parquet")
    people = frame[frame["kind"] == "person"]
    judged = frame["task"].isin(people["task"]) & (frame["worker"] == "gpt-4")
    items = pd.Index(people["left"]).append(pd.Index(people["right"])).unique()
    machine = frame[judged & frame["left"].isin(items) & frame["right"].isin(items)]
    by_people, by_machine = (
        BradleyTerry(ties="half").fit(Comparisons.from_frame(part, task="task")).scores_["score"].reindex(items)
        for part in (people, machine)
    )
    assert spearmanr(by_people, by_machine).statistic == pytest.approx(0.731, abs=0.0005)
