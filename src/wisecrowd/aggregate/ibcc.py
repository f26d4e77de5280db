"""Independent Bayesian classifier combination: Dawid and Skene's model with beliefs instead of estimates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from wisecrowd.aggregate._dirichlet import DirichletRows, divergence
from wisecrowd.crowd import Pairs
from wisecrowd.em import ConfusionEM


@dataclass(kw_only=True, eq=False, repr=False)
class IBCC(ConfusionEM):
    smoothing: float = 1.0
    diagonal: float = 3.0
    class_votes: float = 1.0

    def _estimated(self):
        return isinstance(self.prior, str) and self.prior == "estimate"

    def _class_prior(self, classes):
        if not self._estimated(): return super()._class_prior(classes)
        a = classes + self.class_votes
        return np.exp(digamma(a) - digamma(a.sum()))

    def _class_penalty(self, classes):
        return -divergence(np.full(len(classes), self.class_votes), classes) if self._estimated() else 0.0

    def _rows(self, n_classes):
        return DirichletRows(np.arange(n_classes), n_classes, self.smoothing, self.diagonal)

    def _said(self, tally, pairs):
        return self._rows(tally.shape[1]).geometric_mean(tally, pairs)

    def _penalty(self, tally, pairs):
        return -self._rows(tally.shape[1]).divergence(tally, pairs)

    def _matrix(self, tally, pairs):
        return self._rows(tally.shape[1]).mean(tally, pairs)
