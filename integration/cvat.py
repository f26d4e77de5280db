"""CVAT: tags in "CVAT for images 1.1", as datumaro exports them.

    python integration/cvat.py [--venv FOLDER] [--record]

CVAT's server is no Python package. datumaro, which CVAT uses for other formats, also writes this one.
"""

from __future__ import annotations

from pathlib import Path

from _running import Trial, main

from wisecrowd.io import read_project

EXPECTED = {("a.jpg", "ann", "cat"), ("a.jpg", "bob", "cat"), ("sub/b é.jpg", "ann", "dog"), ("sub/b é.jpg", "bob", "cat"),
        ("c.jpg", "bob", "dog")}  # fmt: skip


def run_trial(context: Trial) -> None:
    """Export tags and read them."""
    print(f"datumaro {context.version('datumaro')}")
    context.run_inside("cvat_export.py")
    for file in sorted(Path("export").rglob("*.xml")):
        context.keep(file, f"{file.parent.name}.xml")
        context.check(f"{file} is recognised", read_project(file).format == "cvat")
    project = read_project("export", "cvat")
    votes = {(row.task, row.worker, row.label) for row in project.get_question().crowd.to_frame().itertuples()}
    context.check("all tags are there, each with its worker", votes == EXPECTED, votes ^ EXPECTED)
    context.check("boxes are counted", project.excluded == {"box": 6}, project.excluded)


if __name__ == "__main__":
    main("cvat", ["datumaro==1.13.12"], run_trial)
