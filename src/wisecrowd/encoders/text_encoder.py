"""Default encoder of texts: TF-IDF and a singular value decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.encoders.feature_encoder import FeatureEncoder
from wisecrowd.errors import InputError, UsageError

#: Largest number of words and pairs of words; rarer ones are left out.
MAX_TERMS = 20_000
#: Smallest number of training texts with a term, unless there are too few texts.
MIN_TEXTS_WITH_TERM = 2


@dataclass
class TextEncoder(FeatureEncoder):
    """Encoder of texts by the frequencies of their words and pairs of words [1]_.

    Frequencies are weighted by the inverse document frequency (TF-IDF), and a truncated singular value decomposition
    reduces them to ``n_features`` numbers. It knows no word but those of the training texts, and no order beyond pairs:
    sentence embeddings are usually better.

    Parameters
    ----------
    n_features : int, default=100
        Number of features; fewer if the texts have fewer terms.
    random_state : int, default=0
        Seed of the decomposition.
    terms : ndarray of shape (n_terms,), optional
        Words and pairs of words; set by `fit`.
    idf : ndarray of shape (n_terms,), optional
        Inverse document frequencies.
    components : ndarray of shape (n_features, n_terms), optional
        Right singular vectors.

    References
    ----------
    .. [1] S. Deerwester, S. T. Dumais, G. W. Furnas, T. K. Landauer and R. Harshman. Indexing by latent semantic
       analysis. Journal of the American Society for Information Science 41(6), 1990.

    Examples
    --------
    >>> texts = ["a red bird", "a blue bird", "red cars are fast", "blue cars are fast"]
    >>> TextEncoder(n_features=2).fit(texts).transform(["fast cars"]).shape
    (1, 2)
    """

    kind: ClassVar[str] = "text"

    n_features: int = 100
    random_state: int = 0
    terms: NDArray[Any] | None = None
    idf: NDArray[np.float64] | None = None
    components: NDArray[np.float64] | None = None

    def fit(self, texts: Sequence[Any] | pd.Series) -> Self:
        """Choose the terms and decompose their frequencies.

        Parameters
        ----------
        texts : sequence of str or Series
            Training texts.

        Returns
        -------
        TextEncoder
            The encoder itself.

        Raises
        ------
        InputError
            If the texts contain no words.
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.utils.extmath import randomized_svd

        if self.n_features < 1:
            raise UsageError(f"n_features must be 1 or more; got {self.n_features}")
        strings = _as_strings(texts)
        min_df = MIN_TEXTS_WITH_TERM if len(strings) > 10 * MIN_TEXTS_WITH_TERM else 1
        vectorizer = TfidfVectorizer(max_features=MAX_TERMS, min_df=min_df, **_settings())
        try:
            rows = vectorizer.fit_transform(strings)
        except ValueError:  # sklearn: empty vocabulary, or no terms remain after pruning
            raise InputError(
                f"the {len(strings):,} texts have no words in common, for example {strings[:1]}; check the column of texts"
            ) from None
        n_components = min(self.n_features, *rows.shape)
        _, _, components = randomized_svd(rows, n_components, random_state=self.random_state)
        self.terms = np.asarray(vectorizer.get_feature_names_out(), dtype=str)
        self.idf, self.components = np.asarray(vectorizer.idf_), np.ascontiguousarray(components)
        return self

    def accepts(self, X: Any) -> bool:
        """Return whether these are texts.

        Parameters
        ----------
        X : object
            Argument of ``predict``.

        Returns
        -------
        bool
        """
        return is_sequence_of_strings(X)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the features of texts.

        Parameters
        ----------
        X : sequence of str or Series
            Texts.

        Returns
        -------
        ndarray of shape (n_texts, n_features)
        """
        from scipy import sparse
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.preprocessing import normalize

        if self.terms is None or self.idf is None or self.components is None:
            raise UsageError("this TextEncoder is not fitted yet; call fit first")
        vocabulary = {str(term): position for position, term in enumerate(self.terms)}
        counts = CountVectorizer(vocabulary=vocabulary, **_settings(for_counts=True)).transform(_as_strings(X))
        frequencies = sparse.csr_array(counts, dtype=np.float64)
        frequencies.data = 1 + np.log(frequencies.data)
        weighted = normalize(frequencies @ sparse.diags_array(self.idf))
        return np.asarray(weighted @ self.components.T)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return terms, weights and components."""
        arrays = {"terms": self.terms, "idf": self.idf, "components": self.components}
        return {"kind": np.array(self.kind)} | {name: array for name, array in arrays.items() if array is not None}

    @classmethod
    def restore(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the encoder of saved arrays.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Result of `arrays`.

        Returns
        -------
        TextEncoder

        Raises
        ------
        ValueError
            If the arrays contradict each other.
        """
        terms, idf, components = arrays["terms"], arrays["idf"], arrays["components"]
        if (
            terms.ndim != 1
            or terms.dtype.kind != "U"
            or idf.shape != terms.shape
            or len(set(terms.tolist())) != terms.size
        ):
            raise ValueError("terms and idf of the encoder contradict each other")
        if components.ndim != 2 or components.shape[1] != terms.size:
            raise ValueError("the components of the encoder do not fit its terms")
        if not (np.isfinite(idf).all() and np.isfinite(components).all()):
            raise ValueError("idf or components of the encoder are not finite")
        return cls(n_features=len(components), terms=terms, idf=idf, components=components)


def is_sequence_of_strings(X: Any) -> bool:
    """Return whether an argument is a sequence of strings.

    Parameters
    ----------
    X : object
        Argument of ``predict``.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_sequence_of_strings(pd.Series(["a bird"])), is_sequence_of_strings(np.zeros((1, 2)))
    (True, False)
    """
    if isinstance(X, str | pd.DataFrame) or not hasattr(X, "__len__") or np.ndim(X) != 1:
        return False
    return len(X) > 0 and all(isinstance(value, str) for value in X)


def _settings(*, for_counts: bool = False) -> dict[str, Any]:
    """Return the settings of the vectorizer, which must be the same in training and prediction."""
    settings: dict[str, Any] = {"ngram_range": (1, 2), "lowercase": True, "strip_accents": "unicode"}
    return settings if for_counts else settings | {"sublinear_tf": True}


def _as_strings(texts: Sequence[Any] | pd.Series) -> list[str]:
    if isinstance(texts, str):
        raise UsageError(f"expected a list of texts; got one text. Pass [{texts[:20]!r}...]")
    return ["" if pd.isna(text) else str(text) for text in texts]
