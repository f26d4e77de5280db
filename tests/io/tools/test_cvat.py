from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io import read_project


def rows(crowd: wc.Crowd) -> list[tuple[Any, ...]]:
    return sorted(crowd.to_frame()[["task", "worker", "label"]].itertuples(index=False, name=None))


def test_tags_of_images(export: Any) -> None:
    question = read_project(export("cvat")).get_question()
    assert rows(question.crowd) == [("a.jpg", "ann", "cat"), ("b.jpg", "auto", "dog")]
    assert question.machines == ["auto"]
    assert question.excluded == {"empty": 1}
    assert read_project(export("cvat-zip")).get_question().crowd == question.crowd


def test_a_folder_of_jobs(tmp_path: Path, making: Any) -> None:
    (tmp_path / "ann.xml").write_text(making.CVAT)
    nobody = making.CVAT.replace("<assignee><username>ann</username><email>a@example.com</email></assignee>", "")
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / "annotations.xml").write_text(nobody.replace('label="cat"', 'label="fox"'))
    (tmp_path / "cy.zip").write_bytes(making.zipped({"annotations.xml": nobody.encode()}))
    crowd = read_project(tmp_path, duplicates="distinct").get_question().crowd
    assert rows(crowd) == [
        ("a.jpg", "ann", "cat"), ("a.jpg", "bob", "fox"), ("a.jpg", "cy", "cat"), ("b.jpg", "auto", "dog"),
    ]  # fmt: skip


def test_folders_are_recognised(tmp_path: Path, making: Any) -> None:
    nobody = making.CVAT.replace("<assignee><username>ann</username><email>a@example.com</email></assignee>", "")
    for name in ("ann", "bob"):
        (tmp_path / "folders" / name).mkdir(parents=True)
        (tmp_path / "folders" / name / "annotations.xml").write_text(nobody)
        (tmp_path / "zips").mkdir(exist_ok=True)
        (tmp_path / "zips" / f"{name}.zip").write_bytes(making.zipped({"annotations.xml": nobody.encode()}))
    (tmp_path / "zips" / "._ann.zip").write_bytes(b"\0")
    for folder in ("folders", "zips"):
        assert read_project(tmp_path / folder, duplicates="distinct").format == "cvat"
        crowd = wc.read(tmp_path / folder, duplicates="distinct")
        assert rows(crowd) == [("a.jpg", "ann", "cat"), ("a.jpg", "bob", "cat"), ("b.jpg", "auto", "dog")]


def test_errors_name_the_file_in_a_folder_or_zip(tmp_path: Path, making: Any) -> None:
    (tmp_path / "ann.xml").write_text(making.CVAT)
    (tmp_path / "bob.zip").write_bytes(making.zipped({"annotations.xml": b"<annotations><image>"}))
    with pytest.raises(InputError, match=r"bob\.zip, annotations\.xml: 'bob' is not XML"):
        read_project(tmp_path)
    (tmp_path / "bob.zip").write_bytes(making.zipped({"a.jpg": b""}))
    with pytest.raises(InputError, match=r"bob\.zip: there is no XML file of CVAT in this zip"):
        read_project(tmp_path)
    (tmp_path / "bob.zip").write_bytes(b"PK\3\4 and no more")
    with pytest.raises(InputError, match=r"bob\.zip: it cannot be read as a zip"):
        read_project(tmp_path)


def test_tasks_of_a_project_have_assignees_of_their_own(tmp_path: Path) -> None:
    meta = "".join(
        f"<task><id>{number}</id><assignee><username>{who}</username></assignee></task>"
        for number, who in ((1, "ann"), (2, "bob"))
    )
    images = "".join(
        f'<image id="{number}" name="a.jpg" task_id="{number}"><tag label="{label}" source="manual"/></image>'
        for number, label in ((1, "cat"), (2, "dog"))
    )
    text = f"<annotations><meta><project><id>9</id><tasks>{meta}</tasks></project></meta>{images}</annotations>"
    (tmp_path / "project.xml").write_text(text)
    assert rows(read_project(tmp_path / "project.xml").get_question().crowd) == [
        ("a.jpg", "ann", "cat"),
        ("a.jpg", "bob", "dog"),
    ]


def test_several_tags_and_those_that_cvat_merged(tmp_path: Path) -> None:
    tags = '<tag label="cat" source="manual"/><tag label="fur" source="manual"/><tag label="dog" source="consensus"/>'
    (tmp_path / "ann.xml").write_text(f'<annotations><image id="0" name="a.jpg">{tags}</image></annotations>')
    question = read_project(tmp_path / "ann.xml").get_question()
    assert rows(question.crowd) == [("a.jpg", "ann", "cat|fur")]
    assert question.excluded == {"merged by CVAT": 1}


def test_attributes_of_tags_are_left_out_and_counted(tmp_path: Path) -> None:
    tag = '<tag label="cat" source="manual"><attribute name="mood">happy</attribute></tag>'
    box = '<box label="cat"><attribute name="mood">sad</attribute></box>'
    (tmp_path / "ann.xml").write_text(f'<annotations><image id="0" name="a.jpg">{tag}{box}</image></annotations>')
    question = read_project(tmp_path / "ann.xml").get_question()
    assert rows(question.crowd) == [("a.jpg", "ann", "cat")]
    assert question.excluded == {"attributes of tags": 1}


BOMB = '<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;&x;">]><annotations><image id="0" name="&y;"/></annotations>'
FILE = '<!DOCTYPE a SYSTEM "file:///etc/passwd"><annotations></annotations>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "declares a document type or entities"),
        (FILE, "declares a document type or entities"),
        ("<annotations><image>", "is not XML: no element found"),
        ("<html></html>", "begins with <html>; expected <annotations> of CVAT for images"),
        ('<annotations><track id="0"/></annotations>', "is of a video; export 'CVAT for images 1.1'"),
        ("<annotations><image/></annotations>", "neither a name nor an id"),
        ('<annotations><image name="a"><tag/></image></annotations>', "a tag of the image 'a' in 'x' has no label"),
        ("<annotations></annotations>", "no question has answers"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.xml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_project(tmp_path / "x.xml", "cvat")


def write_images(path: Path, *images: str, meta: str = "") -> Path:
    listed = "".join(
        f'<image id="{number}" name="{number}.jpg" width="100" height="80">{shapes}</image>'
        for number, shapes in enumerate(images)
    )
    path.write_text(f"<annotations>{meta}{listed}</annotations>")
    return path


BOX = '<box label="cat" source="{}" xtl="10" ytl="20" xbr="40" ybr="60" occluded="0" {}></box>'


def test_boxes_and_points_of_jobs(tmp_path: Path) -> None:
    points = '<points label="eye" source="manual" points="5.5,6;7,8"></points>'
    write_images(tmp_path / "ann.xml", BOX.format("manual", "") + points, "")
    write_images(tmp_path / "bob.xml", "", BOX.format("file", ""))
    boxes = wc.read_boxes(tmp_path, question="boxes")
    assert (boxes.n_votes, boxes.coordinates.tolist()) == (4, [[10, 20, 30, 40]] * 2)
    eyes = wc.read_points(tmp_path, question="points")
    assert (eyes.n_votes, eyes.coordinates.tolist()) == (4, [[5.5, 6], [7, 8]])
    assert read_project(tmp_path).questions == {}  # no tags


def test_boxes_of_models_and_merged_ones(tmp_path: Path) -> None:
    path = write_images(tmp_path / "ann.xml", BOX.format("auto", "") + BOX.format("consensus", ""), "")
    question = read_project(path).get_structured()
    assert question.crowd.workers.tolist() == ["ann", "auto"]
    assert question.crowd.n_votes == 4  # the model saw both images
    assert (question.machines, question.excluded) == (["auto"], {"merged by CVAT": 1})


def test_turned_boxes_become_upright(tmp_path: Path) -> None:
    question = read_project(write_images(tmp_path / "ann.xml", BOX.format("manual", 'rotation="90"'))).get_structured()
    assert isinstance(question.crowd, wc.BoxCrowd)
    assert question.crowd.coordinates[0].tolist() == pytest.approx([5, 25, 40, 30])
    assert question.notes == ["turned boxes were replaced by the upright boxes around them"]


def test_boxes_outside_the_image_and_without_a_place(tmp_path: Path) -> None:
    wide = BOX.format("manual", "").replace('xbr="40"', 'xbr="140"')
    with pytest.raises(InputError, match=r"1 box outside its image.*100 x 80 pixels"):
        wc.read_boxes(write_images(tmp_path / "ann.xml", wide))
    with pytest.raises(InputError, match=r"box of the image '0\.jpg' in 'ann' has no valid place; expected xtl, ytl"):
        wc.read_boxes(write_images(tmp_path / "ann.xml", '<box label="cat"/>'))
    with pytest.raises(InputError, match=r"points of the image '0\.jpg' in 'ann' has no valid place"):
        wc.read_points(write_images(tmp_path / "ann.xml", '<points label="cat" points="5"/>'))


def test_parts_of_skeletons_are_no_points(tmp_path: Path) -> None:
    skeleton = '<skeleton label="cat"><points label="eye" points="5,5"/></skeleton><tag label="cat" source="manual"/>'
    project = read_project(write_images(tmp_path / "ann.xml", skeleton))
    assert (list(project.questions), dict(project.structured), project.excluded) == (["tag"], {}, {"skeleton": 1})
