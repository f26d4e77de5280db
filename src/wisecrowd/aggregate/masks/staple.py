"""STAPLE: masks with a sensitivity and a specificity per worker."""

from __future__ import annotations

from typing import ClassVar, Literal

from wisecrowd.aggregate.masks import _pixel_model as model
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.mask_aggregator import MaskAggregator, PixelInference
from wisecrowd.data.mask_regions import Region
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.vote_patterns import VotePatterns


@method_class
class Staple(MaskAggregator):
    """Simultaneous truth and performance level estimation: pixels by EM, with a sensitivity and a specificity per worker.

    A worker marks a pixel of the true mask with the probability of the worker's sensitivity, and leaves out another pixel
    with that of the specificity. The original estimates the rates on every image by itself (``shared=False``) with a prior
    from the votes (``prior="votes"``) on the whole image (``region="image"``). Rates that all images share are estimated
    from more pixels, which helps if few workers mark an image.

    All pixels are equally hard, although workers disagree mostly at boundaries. Probabilities there are too close to 0
    and 1, so the confidence is too high.

    Examples
    --------
    >>> from wisecrowd import MaskCrowd, Staple
    >>> masks = [[[1, 1, 0]], [[1, 1, 0]], [[0, 1, 1]]]
    >>> fitted = Staple().fit(MaskCrowd.from_arrays(["i"] * 3, ["ann", "bob", "cy"], masks))
    >>> fitted.mask_of("i").astype(int).tolist()
    [[1, 1, 0]]
    """

    references: ClassVar[tuple[str, ...]] = ("warfield2004simultaneous",)

    shared: bool = parameter(default=True, help=model.SHARED_HELP)
    prior: Literal["estimated", "votes"] = parameter(
        default="estimated",
        help="Share of the pixels of a task that belong to the mask: estimated, or the share of the votes.",
    )
    region: Region = parameter(default="box", help=model.REGION_HELP)
    shrinkage: float = parameter(default=1.0, help=model.SHRINKAGE_HELP)
    max_iter: int = parameter(default=200, help=model.MAX_ITER_HELP)
    tol: float = parameter(default=1e-4, help=model.TOL_HELP)

    def _infer_pixels(self, crowd: MaskCrowd, patterns: VotePatterns) -> PixelInference:
        settings = model.PixelSettings(
            False, self.shared, self.prior, self.region, self.shrinkage, self.max_iter, self.tol
        )
        return model.fit_pixel_model(crowd, patterns, settings)
