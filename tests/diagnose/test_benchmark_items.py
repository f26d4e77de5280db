from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd
from wisecrowd.diagnose.benchmark_items import diagnose_benchmark, item_rest_correlation
from wisecrowd.errors import InputError, UsageError

N_ITEMS, N_MODELS = 200, 60


def simulate(seed: int = 0) -> tuple[pd.DataFrame, pd.Series, np.ndarray, np.ndarray]:
    """Return answers, key, abilities and difficulties; item 0 is mis-keyed, items 1 and 2 are the same question."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(1, 1, N_MODELS), rng.normal(0, 1, N_ITEMS)
    difficulty[0] = -1.0
    right = rng.random((N_ITEMS, N_MODELS)) < 1 / (1 + np.exp(difficulty[:, None] - ability))
    right[2] = right[1]
    right[3] = True
    answer = np.where(right, 0, rng.integers(1, 4, right.shape))
    answer[0] = np.where(right[0], 1, rng.choice([0, 2, 3], N_MODELS))  # able models choose answer 1, the key says 0
    item, model = np.divmod(np.arange(right.size), N_MODELS)
    rows = pd.DataFrame({"task": item, "worker": model, "label": answer.ravel()}).astype(str)
    rows["task"], rows["worker"] = "q" + rows["task"].str.zfill(3), "m" + rows["worker"].str.zfill(2)
    return rows, pd.Series("0", index=sorted(rows["task"].unique())), ability, difficulty


@pytest.fixture(scope="module")
def diagnosis():  # type: ignore[no-untyped-def]
    rows, key, _, _ = simulate()
    return diagnose_benchmark(rows, key)


def test_abilities_and_difficulties_have_true_intervals() -> None:
    covered: dict[str, list[float]] = {"ability": [], "difficulty": []}
    for seed in range(4):
        rows, key, ability, difficulty = simulate(seed)
        diagnosis = diagnose_benchmark(rows, key, method="rasch")
        models, items = diagnosis.models.sort_index(), diagnosis.items.sort_index().iloc[4:]
        # The scale has no origin: only differences of abilities and difficulties matter.
        shift = float(models["ability"].mean() - ability.mean())
        covered["ability"].append(((models["low"] - shift <= ability) & (ability <= models["high"] - shift)).mean())
        truth = difficulty[4:] + shift
        covered["difficulty"].append(((items["low"] <= truth) & (truth <= items["high"])).mean())
    assert 0.82 < np.mean(covered["ability"]) < 0.97
    assert 0.82 < np.mean(covered["difficulty"]) < 0.97


def test_defective_items_are_flagged(diagnosis) -> None:  # type: ignore[no-untyped-def]
    flags = diagnosis.items["flag"]
    assert flags["q000"] == "mis-keyed"
    assert diagnosis.items.loc["q000", "suggested"] == "1"
    assert flags["q002"] == "redundant"
    assert diagnosis.items.loc["q002", "redundant_with"] == "q001"
    assert flags["q003"] == "no information"
    assert (flags.iloc[4:] != "").sum() <= 4
    assert flags["q001"] == ""


def test_information_is_concentrated(diagnosis) -> None:  # type: ignore[no-untyped-def]
    assert 50 < diagnosis.n_for_most < N_ITEMS
    assert diagnosis.items.loc["q003", "information"] < 0.3 * diagnosis.items["information"].median()


def test_scores_of_0_and_1_need_no_key() -> None:
    rows, key, _, _ = simulate()
    scores = rows.assign(label=(rows["label"] == key.reindex(rows["task"]).to_numpy()).astype(int))
    with_key, without = diagnose_benchmark(rows, key), diagnose_benchmark(scores)
    numeric = diagnose_benchmark(Crowd.from_frame(scores.astype({"label": float}), numeric=True))
    pd.testing.assert_frame_equal(with_key.models, without.models)
    pd.testing.assert_frame_equal(with_key.models, numeric.models)
    assert "suggested" not in without.items


def test_few_models_are_not_searched_for_redundant_items() -> None:
    rows, key, _, _ = simulate()
    diagnosis = diagnose_benchmark(rows[rows["worker"] < "m10"], key)
    assert "10 models" in diagnosis.notes[0]
    assert diagnosis.items["redundant_with"].isna().all()


def test_item_rest_correlation_is_that_of_numpy() -> None:
    rng = np.random.default_rng(0)
    right = rng.random((5, 30)) < 0.5
    item, model = np.divmod(np.arange(150), 30)
    found = item_rest_correlation(item, model, right.ravel())
    rest = (right.sum(axis=0) - right) / 4
    assert found == pytest.approx([np.corrcoef(right[i], rest[i])[0, 1] for i in range(5)])


def test_bad_input_is_refused() -> None:
    rows, key, _, _ = simulate()
    with pytest.raises(InputError, match="Give the right answers"):
        diagnose_benchmark(rows)
    with pytest.raises(InputError, match="without a key"):
        diagnose_benchmark(rows, key.iloc[1:])
    with pytest.raises(UsageError, match="method"):
        diagnose_benchmark(rows, key, method="glad")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="level"):
        diagnose_benchmark(rows, key, level=90)
