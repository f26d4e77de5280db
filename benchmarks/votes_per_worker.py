"""Draw the number of votes per worker in simulated and real crowds.

python benchmarks/votes_per_worker.py            # writes docs/votes-per-worker.svg; needs the extra 'plot'
"""

from __future__ import annotations

import argparse
from pathlib import Path

from wisecrowd import Crowd, load_dataset, plot
from wisecrowd.errors import InputError
from wisecrowd.simulate import simulate_patterns

PICTURE = Path(__file__).parents[1] / "docs" / "votes-per-worker.svg"
REAL = {"LabelMe": "labelme", "CIFAR-10N": "cifar10n"}


def crowds() -> dict[str, Crowd]:
    """Return simulated crowds, and the real ones on this machine."""
    by_title = {
        f"Simulated, {title}": simulate_patterns("IND-I", n_tasks=45_000, activity=activity).crowd
        for title, activity in (("as in Zhang et al. 2024", "beta(1.5, 3)"), ("everybody works alike", "uniform"))
    }
    for title, name in REAL.items():
        try:
            by_title[title] = load_dataset(name, duplicates="distinct").crowd
        except InputError as error:
            print(f"{title} is left out: {error}")
    return by_title


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(f"wrote {plot.save(plot.votes_per_worker(crowds()), PICTURE)}")
