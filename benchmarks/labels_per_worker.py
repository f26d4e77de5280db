"""Draw how many labels workers give, in simulated crowds and in those real ones that are on this machine.

python benchmarks/votes_per_worker.py            # writes docs/labels-per-worker.svg; needs the extra 'plot'
"""

from __future__ import annotations

from pathlib import Path

from wisecrowd import Crowd, load_dataset, plot
from wisecrowd.errors import InputError
from wisecrowd.simulate import simulate_patterns

PICTURE = Path(__file__).parents[1] / "docs" / "labels-per-worker.svg"
REAL = {"LabelMe": "labelme", "CIFAR-10N": "cifar10n"}


def crowds() -> dict[str, Crowd]:
    found = {
        f"Simulated, {title}": simulate_patterns("IND-I", n_tasks=45_000, activity=activity).crowd
        for title, activity in (("as in Zhang et al. 2024", "beta(1.5, 3)"), ("everybody works alike", "uniform"))
    }
    for title, name in REAL.items():
        try:
            found[title] = load_dataset(name, duplicates="distinct").crowd
        except InputError as error:
            print(f"{title} is left out: {error}")
    return found


if __name__ == "__main__":
    print(f"wrote {plot.save(plot.votes_per_worker(crowds()), PICTURE)}")
