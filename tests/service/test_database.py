"""Tables of the vote database."""

from __future__ import annotations

import pytest

from wisecrowd.errors import UsageError
from wisecrowd.service.database import connect, mask_password


def test_invalid_urls_are_refused() -> None:
    with pytest.raises(UsageError, match="not a database URL"):
        connect("nonsense://x")
    assert "secret" not in mask_password("postgresql+psycopg://me:secret@host/votes")
