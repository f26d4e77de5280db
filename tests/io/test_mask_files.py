"""Masks in PNG and npy files, and tables that name them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wisecrowd import MaskCrowd, Staple, read_masks
from wisecrowd.data.mask_runs import MaskRuns
from wisecrowd.errors import InputError
from wisecrowd.io import mask_files
from wisecrowd.io.mask_files import write_mask_images

Image = pytest.importorskip("PIL.Image")

MASK = np.array([[0, 1, 1], [0, 1, 0]], dtype=np.uint8)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    Image.fromarray(MASK * 255).save(tmp_path / "grey.png")
    Image.fromarray(MASK * 255).convert("1").save(tmp_path / "bits.PNG")
    Image.fromarray(np.dstack([MASK * 200, MASK * 0, MASK * 0])).save(tmp_path / "colour.png")
    Image.fromarray(np.dstack([MASK * 0 + 255] * 3 + [MASK * 255])).save(tmp_path / "alpha.png")
    np.save(tmp_path / "array.npy", MASK)
    names = ["grey.png", "bits.PNG", "colour.png", "alpha.png", "array.npy", ""]
    rows = [f"i1,p{number},{name}" for number, name in enumerate(names)]
    path = tmp_path / "masks.csv"
    path.write_text("\n".join(["task,worker,mask", *rows]))
    return path


def test_files_of_all_kinds_are_read(table: Path) -> None:
    crowd = read_masks(table)
    for row in range(5):
        assert crowd.masks.to_array(row).tolist() == (MASK > 0).tolist(), row
    assert crowd.masks.area[5] == 0


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("none.png", "there is no mask file 'none.png'"),
        ("../other.png", "outside the folder of the table"),
        ("/etc/x.npy", "outside the folder of the table"),
        ("text.png", "text.png cannot be read as a PNG image"),
        ("cube.npy", r"cube.npy holds an array of shape \(2, 2, 2\)"),
    ],
)
def test_other_files_are_refused_with_advice(table: Path, cell: str, message: str) -> None:
    (table.parent / "text.png").write_text("no image")
    np.save(table.parent / "cube.npy", np.ones((2, 2, 2)))
    table.write_text(f"task,worker,mask\ni1,ann,{cell}\n")
    with pytest.raises(InputError, match=message):
        read_masks(table)


def test_huge_images_are_refused(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_files, "MAX_PIXELS", 5)
    with pytest.raises(InputError, match=r"grey\.png has 3 x 2 pixels; the limit is 5"):
        read_masks(table)


def test_images_are_written(tmp_path: Path) -> None:
    fitted = Staple().fit(MaskCrowd.from_arrays(["a/b", "a/b"], ["ann", "bob"], [MASK, MASK]))
    paths = write_mask_images(fitted.runs_, fitted.task_index_, tmp_path / "images")
    assert [path.name for path in paths] == ["a%2Fb.png"]
    assert (np.asarray(Image.open(paths[0])) == MASK * 255).all()
    with pytest.raises(InputError, match="2 masks and 1 different names"):
        write_mask_images(MaskRuns.from_arrays([MASK, MASK]), ["x", "x"], tmp_path / "more")
