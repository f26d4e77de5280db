"""Bradley–Terry: closed forms, other programs' figures, intervals, covariates and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import BradleyTerry, Comparisons
from wisecrowd.errors import UsageError
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
@pytest.mark.slow
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


def test_an_item_that_always_wins_has_a_finite_score() -> None:
    fitted = BradleyTerry().fit([("ann", "a", "b", "a"), ("ann", "b", "c", "b"), ("ann", "c", "b", "c")])
    assert fitted.scores_.index[0] == "a"
    assert np.isfinite(fitted.score_).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"ridge": -1.0}, "ridge must be 0 or more"), ({"level": 1.0}, "between 0 and 1"), ({"ties": "drop"}, "ties"),
     ({"interval": "exact"}, "interval"), ({"interval": "bootstrap", "n_bootstrap": 1}, "n_bootstrap must be 2 or more")],
)  # fmt: skip
def test_impossible_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        BradleyTerry(**options).fit([("ann", "a", "b", "a"), ("bob", "a", "b", "b")])  # type: ignore[arg-type]


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
