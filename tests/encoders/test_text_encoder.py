"""Texts become features by their words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd.encoders.stored_encoder import restore_encoder
from wisecrowd.encoders.text_encoder import TextEncoder
from wisecrowd.errors import InputError, UsageError

TEXTS = [
    f"{colour} {thing} number {number}"
    for number in range(10)
    for colour in ("red", "Blue")
    for thing in ("bird", "car")
]


@pytest.fixture(scope="module")
def encoder() -> TextEncoder:
    return TextEncoder(n_features=6).fit(pd.Series(TEXTS))


def test_similar_texts_have_similar_features(encoder: TextEncoder) -> None:
    rows = encoder.transform(["red bird", "the red bird", "blue car"])
    assert rows.shape == (3, 6)
    assert rows[0] == pytest.approx(rows[1])
    assert rows[0] @ rows[2] < 0.5 * rows[0] @ rows[1]


def test_training_texts_have_the_rows_of_scikit_learn(encoder: TextEncoder) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    assert encoder.components is not None
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), strip_accents="unicode", sublinear_tf=True, min_df=2)
    expected = vectorizer.fit_transform(TEXTS) @ encoder.components.T
    np.testing.assert_allclose(encoder.transform(TEXTS), expected, atol=1e-12)


def test_empty_and_missing_texts_are_zero(encoder: TextEncoder) -> None:
    assert (encoder.transform(["", None, "unknown"]) == 0).all()


def test_it_is_restored(encoder: TextEncoder) -> None:
    restored = restore_encoder(encoder.arrays())
    np.testing.assert_array_equal(restored.transform(TEXTS[:3]), encoder.transform(TEXTS[:3]))
    for change in (
        {"idf": np.ones(2)},
        {"components": np.ones((2, 2))},
        {"terms": np.array(["a", "a"]), "idf": np.ones(2)},
    ):
        with pytest.raises(ValueError, match="of the encoder"):
            restore_encoder(encoder.arrays() | change)


def test_texts_and_rows_are_told_apart(encoder: TextEncoder) -> None:
    assert encoder.accepts(pd.Series(["red"]))
    assert not encoder.accepts(np.zeros((1, 6)))
    assert not encoder.accepts(pd.DataFrame({"a": ["red"]}))


def test_what_is_wrong() -> None:
    with pytest.raises(InputError, match="have no words in common"):
        TextEncoder().fit(["", "!"])
    with pytest.raises(UsageError, match="got one text"):
        TextEncoder().fit("a red bird")
    with pytest.raises(UsageError, match="not fitted yet"):
        TextEncoder().transform(["red"])
    with pytest.raises(UsageError, match="n_features must be 1 or more"):
        TextEncoder(n_features=0).fit(TEXTS)
