"""Processor seconds of crowd-kit on masks or texts in a folder: ``structured_peers.py FOLDER NAME...``; runs where crowd-kit is."""

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
from nltk.translate.gleu_score import sentence_gleu

warnings.simplefilter("ignore")
N_ITER = 10
MASKS = {"majority": SegmentationMajorityVote, "em": SegmentationEM, "rasa": SegmentationRASA}


def compare_words(one, other):
    """Return the GLEU score of words. That of crowd-kit 1.4.2 compares words with letters: equal texts have 0."""
    return sentence_gleu([one.split()], other.split())


def fit_masks(folder, names):
    votes = pd.read_parquet(folder / "votes.parquet")
    votes["segmentation"] = list(np.load(folder / "masks.npy"))
    figures = {}
    for name in names:
        begin = time.process_time()
        masks = MASKS[name]().fit_predict(votes.copy())
        figures[name] = {"seconds": time.process_time() - begin}
        np.save(folder / f"peer-{name}.npy", np.stack(masks.sort_index().to_list()))
    return figures


def fit_texts(folder, names):
    votes = pd.read_parquet(folder / "texts.parquet")
    vectors = pd.read_parquet(folder / "vectors.parquet")
    embeddings = dict(zip(vectors.index, vectors.to_numpy(), strict=True))
    figures = {}
    for name in names:
        begin = time.process_time()
        if name == "rover":
            texts = ROVER(tokenizer=str.split, detokenizer=" ".join, silent=True).fit_predict(votes)
        else:
            method = TextRASA
            options = {"encoder": embeddings.__getitem__, "n_iter": N_ITER, "tol": 0.0}
            if name == "text hrrasa":
                method, options["output_similarity"] = TextHRRASA, compare_words
            texts = method(**options).fit_predict(votes, None)
        figures[name] = {"seconds": time.process_time() - begin}
        texts.to_frame("text").to_parquet(folder / f"peer-{name}.parquet")
    return figures


if __name__ == "__main__":
    place = Path(sys.argv[1])
    fit = fit_masks if (place / "masks.npy").exists() else fit_texts
    print(json.dumps(fit(place, sys.argv[2:])))
