"""Error rates of texts."""

from __future__ import annotations

import pandas as pd
import pytest

from wisecrowd.errors import InputError
from wisecrowd.evaluate.text_metrics import compute_error_rates


def test_rates_are_edits_over_the_length_of_the_reference() -> None:
    assert compute_error_rates(["a b c", "a", "", "x"], ["A, b d.", "a b c d", "", ""]).tolist() == pytest.approx(
        [1 / 3, 0.75, 0, 1]
    )
    assert compute_error_rates(["abd"], ["abc"], unit="characters").tolist() == pytest.approx([1 / 3])
    assert compute_error_rates(["A"], ["a"], normalisation="none").tolist() == [1]


def test_series_are_aligned() -> None:
    texts, reference = pd.Series({"t2": "b", "t1": "a"}), pd.Series({"t1": "a", "t2": "b", "t3": "c"})
    assert compute_error_rates(texts, reference).tolist() == [0, 0]
    with pytest.raises(InputError, match="have no reference"):
        compute_error_rates(reference, texts)
    with pytest.raises(InputError, match="one reference per text"):
        compute_error_rates(["a"], ["a", "b"])
