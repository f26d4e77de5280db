"""Print the lowest versions that pyproject.toml allows, one pin per line, for ``pip install -r``.

    python .ci/lower_bounds.py > pins.txt

Two extras are left out: old torch wheels for Linux need CUDA, and Ray is tested with the version of constraints.txt only.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

EXTRAS = ("fast", "datasets", "report", "plot", "tools", "serve", "postgres", "cluster")
LEFT_OUT = ("ray", "wisecrowd")


def main() -> None:
    """Print the pins."""
    project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = list(project["dependencies"])
    for extra in EXTRAS:
        requirements += project["optional-dependencies"][extra]
    for requirement in requirements:
        if re.match(r"[\w-]+", requirement)[0] not in LEFT_OUT:
            print(requirement.replace(">=", "=="))


if __name__ == "__main__":
    main()
