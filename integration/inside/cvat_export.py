"""Export tags of two workers in CVAT's format with datumaro."""

import numpy as np
from datumaro.components.annotation import AnnotationType, Bbox, Label, LabelCategories
from datumaro.components.dataset import Dataset
from datumaro.components.dataset_base import DatasetItem
from datumaro.components.media import Image

TAGS = {"ann": {"a": [0], "sub/b é": [1], "c": []}, "bob": {"a": [0], "sub/b é": [0], "c": [1]}}

if __name__ == "__main__":
    names = {AnnotationType.label: LabelCategories.from_iterable(["cat", "dog"])}
    for worker, tags in TAGS.items():
        items = [
            DatasetItem(
                id=image,
                subset="default",
                media=Image.from_numpy(data=np.zeros((4, 6, 3), dtype=np.uint8)),
                annotations=[*map(Label, labels), Bbox(0, 0, 2, 2, label=0)],
            )
            for image, labels in tags.items()
        ]
        Dataset.from_iterable(items, categories=names).export(f"export/{worker}", "cvat", save_media=False)
