"""Dawid and Skene (1979), section 4: 45 patients, five anaesthetists; the first one judged three times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wisecrowd import DawidSkene, load_dataset


@pytest.mark.data
def test_the_published_marginals(data_folder: Path) -> None:
    crowd = load_dataset(data_folder / "dawid_skene_anesthesia", duplicates="keep").crowd
    assert (crowd.n_tasks, crowd.n_workers, crowd.n_votes) == (45, 5, 315)
    fitted = DawidSkene(smoothing=0, diagonal=0, tol=1e-12, max_iter=2000).fit(crowd)
    # Table 3 of the paper: estimated marginal probabilities of the four classes.
    np.testing.assert_allclose(fitted.prior_, [0.40, 0.42, 0.11, 0.07], atol=0.005)
    # Table 2: observer 1, true class 1, says 1 with probability .89 and 2 with .11.
    np.testing.assert_allclose(fitted.confusion_[0, 0], [0.89, 0.11, 0.00, 0.00], atol=0.005)
