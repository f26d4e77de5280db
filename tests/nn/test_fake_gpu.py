"""With ``device="cuda"``, all tensors of a training are on the GPU: none is left behind on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.nn.fake_gpu import use_fake_gpu  # noqa: E402

from wisecrowd import methods, simulate_crowd  # noqa: E402
from wisecrowd.base.fields import parameter_fields  # noqa: E402

MADE = simulate_crowd(40, 6, 3, votes_per_task=3, workers={"expert": 4, "noisy": 2}, random_state=0)
X = 3 * np.eye(3)[MADE.crowd.classes.get_indexer(MADE.truth)] + np.random.default_rng(0).normal(size=(40, 3))
LEARNERS = [
    name for name, kind in methods("learn").items() if "device" in {field.name for field in parameter_fields(kind)}
]
#: Small settings, so that a fit takes a fraction of a second.
SMALL = {"epochs": 2, "max_iter": 2, "hidden": 4, "batch_size": 16, "n_restarts": 1, "warmup": 1}


def test_the_fake_gpu_notices_what_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    with use_fake_gpu(monkeypatch) as gpu:
        there, here = torch.ones(3).to("cuda"), torch.ones(3)
        assert there.device.type == "cuda"
        assert (there * 2).device.type == "cuda"
        assert (there * 2).cpu().device.type == "cpu"
        assert here.device.type == "cpu"
        assert torch.zeros(2, device=there.device).device.type == "cuda"
        assert gpu.mixed == []
        _ = there + here
        assert "add" in gpu.mixed[0]
        _ = there.numpy()
        assert "numpy" in gpu.mixed[1]


@pytest.mark.parametrize("name", LEARNERS)
def test_no_tensor_is_left_behind(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind: Any = methods("learn")[name]
    names = {field.name for field in parameter_fields(kind)}
    settings = {key: value for key, value in SMALL.items() if key in names}
    expected = kind(device="cpu", **settings).fit(X, MADE.crowd)
    with use_fake_gpu(monkeypatch) as gpu:
        fitted = kind(device="cuda", **settings).fit(X, MADE.crowd)
        posterior = fitted.predict_proba(X)
    assert gpu.mixed == []
    assert gpu.n_calls > 50  # it was there
    np.testing.assert_allclose(posterior, expected.predict_proba(X), rtol=1e-4, atol=1e-5)
