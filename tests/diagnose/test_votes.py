"""Quality of votes: the numbers of cleanlab, and Bayes' rule by hand."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd, CrowdLab, DawidSkene, MajorityVote, Median, Raykar, simulate_crowd, vote_quality
from wisecrowd.errors import UsageError

LABELS = np.array([
    [0, 0, 0, -1], [1, 1, 1, 2], [2, 2, -1, 2], [0, 1, -1, -1], [-1, 2, 2, 0],
    [1, -1, -1, -1], [2, 2, 2, 1], [1, 2, -1, -1], [0, 0, -1, 0], [-1, -1, 1, 1],
])  # fmt: skip
PREDICTED = np.array([
    [0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.3, 0.6, 0.1], [0.5, 0.2, 0.3],
    [0.6, 0.3, 0.1], [0.1, 0.4, 0.5], [0.2, 0.4, 0.4], [0.8, 0.1, 0.1], [0.3, 0.3, 0.4],
])  # fmt: skip
# detailed_label_quality of get_label_quality_multiannotator(LABELS with NaN for -1, PREDICTED) of cleanlab 2.9.0, by vote.
SELF_CONFIDENCE = [
    0.757036372, 0.757036372, 0.757036372, 0.675496292, 0.675496292, 0.675496292, 0.18263695, 0.798208953, 0.798208953,
    0.798208953, 0.380858615, 0.518245862, 0.543100225, 0.543100225, 0.304975637, 0.46380522, 0.675496292, 0.675496292,
    0.675496292, 0.223406854, 0.432500379, 0.414962334, 0.798208953, 0.798208953, 0.798208953, 0.469004478, 0.469004478,
]  # fmt: skip
NORMALIZED_MARGIN = [
    0.807584799, 0.807584799, 0.807584799, 0.746429671, 0.746429671, 0.746429671, 0.253570329, 0.848656715, 0.848656715,
    0.848656715, 0.431306377, 0.568693623, 0.619062294, 0.619062294, 0.380937706, 0.514110827, 0.726044719, 0.726044719,
    0.726044719, 0.273955281, 0.508769023, 0.491230977, 0.848656715, 0.848656715, 0.848656715, 0.585266644, 0.585266644,
]  # fmt: skip


def make_crowd() -> Crowd:
    task, worker = np.nonzero(LABELS >= 0)
    return Crowd.from_codes(task, worker, LABELS[task, worker], tasks=range(10), workers=range(4), classes=range(3))


def test_the_numbers_of_cleanlab() -> None:
    crowd = make_crowd()
    model = CrowdLab(pred_probs=PREDICTED).fit(np.arange(10.0)[:, None], crowd)
    table = vote_quality(crowd, model)
    assert table.columns.tolist() == ["task", "worker", "label", "quality"]
    np.testing.assert_allclose(table["quality"], SELF_CONFIDENCE, atol=1e-9)
    np.testing.assert_allclose(vote_quality(crowd, model, score="margin")["quality"], NORMALIZED_MARGIN, atol=1e-9)


def test_quality_by_others_is_the_posterior_without_the_vote() -> None:
    crowd = simulate_crowd(40, 6, 3, votes_per_task=3, random_state=2).crowd
    model = DawidSkene().fit(crowd)
    table = vote_quality(crowd, model)
    confusion, prior = model.confusion_, model.prior_
    for row in range(0, crowd.n_votes, 7):
        others = np.flatnonzero((crowd.task == crowd.task[row]) & (np.arange(crowd.n_votes) != row))
        evidence = np.log(prior) + sum(np.log(confusion[crowd.worker_codes[i], :, crowd.label[i]]) for i in others)
        probs = np.exp(evidence - evidence.max())
        expected = probs[crowd.label[row]] / probs.sum()
        assert table["quality_by_others"].iloc[row] == pytest.approx(expected, abs=1e-6)
        with_own = probs * confusion[crowd.worker_codes[row], :, crowd.label[row]]
        assert table["quality"].iloc[row] == pytest.approx(with_own[crowd.label[row]] / with_own.sum(), abs=1e-6)


def test_wrong_votes_have_low_quality() -> None:
    made = simulate_crowd(400, workers=["noisy(0.8)"] * 12, n_classes=3, votes_per_task=5, random_state=0)
    table = vote_quality(made.crowd)
    is_right = (table["label"] == table["task"].map(made.truth)).to_numpy()
    for column in ("quality", "quality_by_others"):
        ranks = table[column].rank().to_numpy()
        n_right, n_wrong = is_right.sum(), (~is_right).sum()
        auc = (ranks[is_right].sum() - n_right * (n_right + 1) / 2) / (n_right * n_wrong)
        assert auc > 0.9


def test_any_model_with_class_probabilities_scores_votes() -> None:
    crowd = make_crowd()
    shares = vote_quality(crowd, MajorityVote().fit(crowd))
    assert shares.loc[3, "quality"] == pytest.approx(0.75)
    learnt = vote_quality(crowd, Raykar().fit(np.arange(10.0)[:, None], crowd))
    assert learnt["quality"].between(0, 1).all()
    assert vote_quality(crowd, "one-coin").shape == (crowd.n_votes, 5)


def test_one_class_has_a_full_margin() -> None:
    crowd = Crowd.from_triples([("t", "a", "x"), ("t", "b", "x")])
    assert vote_quality(crowd, score="margin")["quality"].tolist() == [1.0, 1.0]


def test_unsuitable_models_are_refused() -> None:
    crowd = make_crowd()
    other = DawidSkene().fit(Crowd.from_triples([("t", "a", 0), ("t", "b", 1)]))
    with pytest.raises(UsageError, match="differs from the crowd"):
        vote_quality(crowd, other)
    with pytest.raises(UsageError, match="no class probabilities"):
        vote_quality(crowd, DawidSkene())
    numbers = Crowd.from_triples([("t", "a", 0.5), ("t", "b", 0.7)], numeric=True)
    with pytest.raises(UsageError, match="no class probabilities"):
        vote_quality(crowd, Median().fit(numbers))
    with pytest.raises(UsageError, match="score must be one of"):
        vote_quality(crowd, score="entropy")  # type: ignore[arg-type]
