"""Fast Dawid-Skene: hard decisions instead of posteriors, so that a handful of passes is enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.dawid_skene import DawidSkene
from wisecrowd.em import Statistics
from wisecrowd.engines.local import LocalEngine
from wisecrowd.kernels import LEAST, Expectation
