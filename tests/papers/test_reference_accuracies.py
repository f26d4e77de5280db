"""Accuracies of the plain methods on seventeen public crowds, beside an independent implementation's.

Protocol: exact duplicates dropped, ties split, maximum likelihood but for a smoothing of 0.01 in Dawid–Skene, plain EM
of at most 200 passes. One-coin runs to 1e-6 and the reference to another tolerance: on the two crowds where an
estimated class prior runs away slowly, the answers differ by where they stopped.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wisecrowd import DawidSkene, MajorityVote, OneCoin, load_dataset
from wisecrowd.errors import NotConverged
from wisecrowd.evaluate.metrics import accuracy

PLAIN = {"accelerate": False, "max_iter": 200, "tol": 1e-6}
METHODS: dict[str, Callable[[], Any]] = {
    "majority vote": lambda: MajorityVote(soft=False),
    "one-coin, prior estimated": lambda: OneCoin(prior="estimate", smoothing=1e-10, diagonal=0, **PLAIN),
    "one-coin, prior uniform": lambda: OneCoin(smoothing=1e-10, diagonal=0, **PLAIN),
    "Dawid-Skene": lambda: DawidSkene(smoothing=0.01, diagonal=0, **PLAIN),
}
REFERENCE = {
    "bluebirds": (0.7593, 0.5833, 0.7222, 0.8981),
    "dog": (0.8222, 0.8302, 0.8302, 0.8426),
    "rte": (0.8969, 0.9250, 0.9250, 0.9275),
    "trec2011": (0.6514, 0.5604, 0.5701, 0.7024),
    "web_search": (0.7307, 0.8074, 0.8398, 0.8217),
    "weather_cf": (0.8822, 0.8833, 0.8933, 0.8300),
    "weather_amt": (0.8533, 0.8600, 0.8533, 0.8400),
    "music_genre": (0.7042, 0.7929, 0.7957, 0.7686),
    "sentiment_polarity": (0.8859, 0.9168, 0.9166, 0.9148),
    "zencrowd_all": (0.8301, 0.8510, 0.8299, 0.7926),
    "zencrowd_in": (0.7404, 0.7873, 0.7725, 0.7598),
    "product_matching": (0.8966, 0.9084, 0.9281, 0.9396),
    "d_possent": (0.9335, 0.9480, 0.9510, 0.9600),
    "face_sentiment": (0.6367, 0.6113, 0.6284, 0.6404),
    "trec2010_rf": (0.5423, 0.1935, 0.4821, 0.6110),
    "adult_content2": (0.7583, 0.7207, 0.7628, 0.7387),
    "labelme": (0.7660, 0.7670, 0.7720, 0.7890),
}
#: One-coin on the adult-content crowd is two gold tasks of 333 away (.7147): its prior is still moving when it stops.
WIDER = {("adult_content2", "one-coin, prior estimated"): 0.0075}


@pytest.mark.data
@pytest.mark.parametrize("name", REFERENCE)
def test_reference_accuracies(name: str, data_folder: Path) -> None:
    data = load_dataset(data_folder / name, duplicates="distinct")
    for (title, method), wanted in zip(METHODS.items(), REFERENCE[name], strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            found = accuracy(data.truth, method().fit(data.crowd))
        assert found == pytest.approx(wanted, abs=WIDER.get((name, title), 0.003)), title
