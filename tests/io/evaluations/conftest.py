from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def recorded() -> Path:
    """Logs that the real tools wrote with mock models; ``integration/evaluation_logs.py --record`` renews them."""
    return Path(__file__).parents[2] / "recorded" / "evaluation_logs"
