"""Processor seconds of crowd-kit on masks or texts in a folder: ``structured_peers.py NAME FOLDER``; runs where crowd-kit is."""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from crowdkit.aggregation import (
    ROVER,
    SegmentationEM,
    SegmentationMajorityVote,
    SegmentationRASA,
    TextHRRASA,
    TextRASA,
)

warnings.simplefilter("ignore")


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    if (folder / "masks.npy").exists():
        votes = pd.read_parquet(folder / "votes.parquet")
        votes["segmentation"] = list(np.load(folder / "masks.npy"))
        method = {"majority": SegmentationMajorityVote, "em": SegmentationEM, "rasa": SegmentationRASA}[name]()
        begin = time.process_time()
        masks = method.fit_predict(votes)
        end = time.process_time()
        np.save(folder / f"peer-{name}.npy", np.stack(masks.sort_index().to_list()))
    else:
        votes = pd.read_parquet(folder / "texts.parquet")
        embeddings = np.load(folder / "embeddings.npy")
        by_text = dict(zip(votes["text"], embeddings, strict=True))
        if name == "rover":
            method = ROVER(tokenizer=str.split, detokenizer=" ".join, silent=True)
        else:
            method = {"text rasa": TextRASA, "text hrrasa": TextHRRASA}[name](encoder=by_text.__getitem__)
        begin = time.process_time()
        texts = method.fit_predict(votes) if name == "rover" else method.fit_predict(votes, None)
        end = time.process_time()
        texts.to_frame("text").to_parquet(folder / f"peer-{name}.parquet")
    print(json.dumps({"seconds": end - begin}))


if __name__ == "__main__":
    main()
