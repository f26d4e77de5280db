"""Encoders that were saved with a learner."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from wisecrowd.encoders.feature_encoder import FeatureEncoder
from wisecrowd.encoders.image_encoder import ImageEncoder
from wisecrowd.encoders.pretrained_encoder import PretrainedEncoder
from wisecrowd.encoders.table_encoder import TableEncoder
from wisecrowd.encoders.text_encoder import TextEncoder
from wisecrowd.errors import preview

#: Encoders by the name in saved files.
ENCODERS: dict[str, type[FeatureEncoder]] = {
    encoder.kind: encoder for encoder in (TableEncoder, TextEncoder, ImageEncoder, PretrainedEncoder)
}


def restore_encoder(arrays: dict[str, NDArray[Any]]) -> FeatureEncoder:
    """Return the encoder of saved arrays.

    Parameters
    ----------
    arrays : dict of str to ndarray
        Result of `FeatureEncoder.arrays`.

    Returns
    -------
    FeatureEncoder

    Raises
    ------
    ValueError
        If no encoder has such arrays.

    Examples
    --------
    >>> import pandas as pd
    >>> from wisecrowd.encoders.table_encoder import TableEncoder
    >>> restore_encoder(TableEncoder().fit(pd.DataFrame({"x": [1.0, None]})).arrays()).feature_names
    ['x', 'x is missing']
    """
    kind = arrays.get("kind")
    encoder = ENCODERS.get(str(kind))
    if encoder is None:
        raise ValueError(f"no encoder is called {preview([str(kind)])}")
    try:
        return encoder.restore(arrays)
    except KeyError as error:
        raise ValueError(f"the array {error} of the encoder is missing") from None
