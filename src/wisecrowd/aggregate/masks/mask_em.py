"""Masks by EM with one accuracy per worker."""

from __future__ import annotations

from typing import ClassVar, Literal

from wisecrowd.aggregate.masks import _pixel_model as model
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.mask_aggregator import MaskAggregator, PixelInference
from wisecrowd.data.mask_regions import Region
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.vote_patterns import VotePatterns


@method_class
class MaskEM(MaskAggregator):
    """Pixels by EM, with one accuracy per worker: the one-coin Dawid–Skene model on pixels.

    `Staple` tells pixels that a worker misses from pixels that a worker adds and is usually better. ``MaskEM(shared=False,
    prior="pixel", region="union", shrinkage=0)`` is the EM of Lee et al. as in crowd-kit's SegmentationEM: every image by
    itself, and the prior of a pixel is its posterior of the iteration before. Votes are counted again in every iteration then, so
    probabilities go to 0 and 1 and mean little.

    Examples
    --------
    >>> from wisecrowd import MaskCrowd, MaskEM
    >>> masks = [[[1, 1, 0]], [[1, 1, 0]], [[0, 1, 1]]]
    >>> fitted = MaskEM().fit(MaskCrowd.from_arrays(["i"] * 3, ["ann", "bob", "cy"], masks))
    >>> fitted.mask_of("i").astype(int).tolist()
    [[1, 1, 0]]
    """

    references: ClassVar[tuple[str, ...]] = ("lee2018aggregating",)

    shared: bool = parameter(default=True, help=model.SHARED_HELP)
    prior: Literal["estimated", "votes", "pixel"] = parameter(
        default="estimated",
        help="Share of the pixels of a task that belong to the mask: estimated, the share of the votes, or for every "
        "pixel its posterior "
        "of the iteration before ('pixel').",
    )
    region: Region = parameter(default="box", help=model.REGION_HELP)
    shrinkage: float = parameter(default=1.0, help=model.SHRINKAGE_HELP)
    max_iter: int = parameter(default=200, help=model.MAX_ITER_HELP)
    tol: float = parameter(default=1e-4, help=model.TOL_HELP)

    def _infer_pixels(self, crowd: MaskCrowd, patterns: VotePatterns) -> PixelInference:
        settings = model.PixelSettings(
            True, self.shared, self.prior, self.region, self.shrinkage, self.max_iter, self.tol
        )
        return model.fit_pixel_model(crowd, patterns, settings)
