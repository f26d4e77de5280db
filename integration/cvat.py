"""CVAT: tags in "CVAT for images 1.1", as datumaro exports them.

    python integration/cvat.py [--venv FOLDER] [--record]

CVAT's server is not among Python's packages; datumaro, which it uses for other formats, has a writer of this one.
"""

from __future__ import annotations

from pathlib import Path

from _running import Trial, main

from wisecrowd.io import read_project

SAID = {("a.jpg", "ann", "cat"), ("a.jpg", "bob", "cat"), ("sub/b é.jpg", "ann", "dog"), ("sub/b é.jpg", "bob", "cat"),
        ("c.jpg", "bob", "dog")}  # fmt: skip


def trial(tried: Trial) -> None:
    """Export and read."""
    print(f"datumaro {tried.version('datumaro')}")
    tried.run_inside("cvat_export.py")
    for file in sorted(Path("export").rglob("*.xml")):
        tried.keep(file, f"{file.parent.name}.xml")
        tried.check(f"{file} is recognised", read_project(file).format == "cvat")
    project = read_project("export", "cvat")
    told = {(row.task, row.worker, row.label) for row in project.get_question().crowd.to_frame().itertuples()}
    tried.check("all tags are there, each with its worker", told == SAID, told ^ SAID)
    tried.check("boxes are counted", project.excluded == {"box": 6}, project.excluded)


if __name__ == "__main__":
    main("cvat", ["datumaro==1.13.12"], trial)
