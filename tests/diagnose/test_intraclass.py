"""Intraclass correlations against published figures and pingouin 0.7.0."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.diagnose.intraclass import intraclass_correlation
from wisecrowd.errors import InputError, UsageError

#: Ratings of Shrout and Fleiss (1979), table 2, and a second table.
SHROUT = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
SECOND = [[0, 5, 3], [3, 2, 3], [6, 6, 3], [2, 3, 3], [6, 1, 4], [2, 5, 4],
          [5, 2, 4], [1, 6, 4], [5, 4, 5], [8, 8, 5], [4, 5, 5], [7, 2, 5]]  # fmt: skip
#: Results of pingouin.intraclass_corr, which calls ICC(2,·) ICC(A,·) and ICC(3,·) ICC(C,·).
PINGOUIN = {
    "shrout": {
        "ICC(1)": (0.1657417684054755, -0.13293232, 0.72256006),
        "ICC(2,1)": (0.28976377952755916, 0.01878651, 0.76108437),
        "ICC(3,1)": (0.7148407148407154, 0.34246477, 0.94585826),
        "ICC(1,k)": (0.44279713367926876, -0.88444216, 0.91241542),
        "ICC(2,k)": (0.6200505475989893, 0.07113682, 0.92723204),
        "ICC(3,k)": (0.9093155423770697, 0.67567471, 0.98589168),
    },
    "second": {
        "ICC(1)": (0.1420612813370477, -0.16338559, 0.5554553),
        "ICC(2,1)": (0.11937097927090813, -0.21190088, 0.55189873),
        "ICC(3,1)": (0.11059602649006656, -0.19106863, 0.53049365),
        "ICC(1,k)": (0.3318872017353585, -0.72806859, 0.7894062),
        "ICC(2,k)": (0.2890940565493371, -1.10327072, 0.78700361),
        "ICC(3,k)": (0.2716919739696319, -0.92772366, 0.77219348),
    },
}


def make_crowd(ratings: list[list[int]], **options: bool) -> Crowd:
    votes = [(task, rater, value) for task, row in enumerate(ratings) for rater, value in enumerate(row)]
    return Crowd.from_triples(votes, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "ratings"), [("shrout", SHROUT), ("second", SECOND)])
def test_coefficients_and_intervals_equal_pingouin(name: str, ratings: list[list[int]]) -> None:
    table = intraclass_correlation(make_crowd(ratings, numeric=True), level=0.95)
    assert table.index.tolist() == list(PINGOUIN[name])
    for coefficient, expected in PINGOUIN[name].items():
        assert np.allclose(table.loc[coefficient, ["icc", "low", "high"]].astype(float), expected, atol=1e-6)


def test_f_tests_equal_pingouin() -> None:
    table = intraclass_correlation(make_crowd(SHROUT, numeric=True))
    assert np.allclose(table.loc["ICC(1)", ["f", "df1", "df2", "p"]].astype(float), [1.7946784922, 5, 18, 0.1647688083])
    assert np.allclose(
        table.loc["ICC(3,k)", ["f", "df1", "df2", "p"]].astype(float), [11.0272479564, 5, 15, 0.0001345665], atol=1e-8
    )


def test_ordered_classes_have_their_values() -> None:
    grades, numbers = make_crowd(SHROUT, ordered=True), make_crowd(SHROUT, numeric=True)
    assert np.allclose(intraclass_correlation(grades), intraclass_correlation(numbers))


def test_different_raters_have_only_one_way_coefficients() -> None:
    votes = [(task, f"{task}-{rater}", value) for task, row in enumerate(SHROUT) for rater, value in enumerate(row)]
    table = intraclass_correlation(Crowd.from_triples(votes, numeric=True))
    assert table.index.tolist() == ["ICC(1)", "ICC(1,k)"]
    assert table.loc["ICC(1)", "icc"] == pytest.approx(0.1657417684)


def test_unbalanced_ratings_have_an_effective_number() -> None:
    rng = np.random.default_rng(0)
    score = rng.normal(size=3000)
    votes = [(t, (t, r), score[t] + rng.normal()) for t in range(3000) for r in range(2 + t % 4)]
    votes = [(t, str(worker), value) for t, worker, value in votes]
    table = intraclass_correlation(Crowd.from_triples(votes, numeric=True))
    assert table.loc["ICC(1)", "icc"] == pytest.approx(0.5, abs=0.03)
    few = intraclass_correlation(Crowd.from_triples(votes, numeric=True)[:4])
    assert few.loc["ICC(1)", "k"] == pytest.approx((14 - (4 + 9 + 16 + 25) / 14) / 3)


def test_equal_raters_are_perfectly_reliable() -> None:
    table = intraclass_correlation(make_crowd([[value] * 3 for value in (1, 2, 4)], numeric=True))
    assert np.allclose(table[["icc", "high"]], 1)


def test_what_cannot_be_computed_is_refused() -> None:
    with pytest.raises(InputError, match="--ordered --classes"):
        intraclass_correlation(Crowd.from_triples([("t", "w", "cat"), ("t", "v", "dog")]))
    with pytest.raises(InputError, match="some with several ratings"):
        intraclass_correlation(Crowd.from_triples([("t", "w", 1.0), ("u", "v", 2.0)], numeric=True))
    with pytest.raises(UsageError, match="level must be between 0 and 1"):
        intraclass_correlation(make_crowd(SHROUT, numeric=True), level=95)
