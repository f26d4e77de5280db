"""Fit the coefficients of the confidence to public crowds, and write them into the package.

    python benchmarks/fit_confidence.py

The crowds are found through WISECROWD_DATA. `wisecrowd bench run confidence` measures the same fit with one crowd left out.
"""

from __future__ import annotations

import json
from pathlib import Path

from wisecrowd.bench.confidence_prior import FAMILIES, METHOD, SHARES, fit_prior, measure_crowds
from wisecrowd.evaluate import accuracy
from wisecrowd.utils.files import write_text

#: Significant digits of the coefficients; more would only reflect the machine.
DIGITS = 4


def main() -> None:
    """Fit the coefficients and write them."""
    prior = fit_prior(measure_crowds(SHARES))
    record = {
        "prior": {name: float(f"{value:.{DIGITS}g}") for name, value in prior.to_dict().items()},
        "method": METHOD,
        "shares": list(SHARES),
        "crowds": list(FAMILIES),
        "script": "benchmarks/fit_confidence.py",
    }
    path = Path(accuracy.__file__).parent / accuracy.PRIOR_FILE
    write_text(path, json.dumps(record, indent=2) + "\n")
    print(json.dumps(record["prior"], indent=2))


if __name__ == "__main__":
    main()
