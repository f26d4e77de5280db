from __future__ import annotations

from typing import Any

from wisecrowd.base.default_method import DEFAULT_METHOD
from wisecrowd.base.registry import find
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.live import LiveModel


def test_the_default_serves_commands_diagnoses_shards_and_the_service() -> None:
    method: Any = find(DEFAULT_METHOD)
    assert issubclass(method, ConfusionEM)
    assert method.streams
    assert LiveModel(method()).method.name == DEFAULT_METHOD
