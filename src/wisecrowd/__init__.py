"""wisecrowd: many people labelled your data, and they disagree.

>>> import wisecrowd as wc
>>> crowd = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t1", "cy", "dog"), ("t2", "bob", "dog")])
>>> wc.DawidSkene().fit(crowd).labels_.to_dict()
{'t1': 'cat', 't2': 'dog'}

Names load when they are first used, so that ``import wisecrowd`` costs little more than ``import pandas``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

#: Public name -> the module that defines it.
_HOME = {
    "AALI": "aggregate.categorical.aali",
    "AdaptiveDifficulty": "learn.difficulty.adaptive_difficulty",
    "AnnotMix": "learn.annot_mix",
    "BWA": "aggregate.categorical.bwa",
    "BayesianSequence": "aggregate.structured.bayesian_sequence",
    "BinaryRelevance": "aggregate.multilabel.binary_relevance",
    "BoxConsensus": "aggregate.structured.box_consensus",
    "BoxCrowd": "data.boxes",
    "BradleyTerry": "aggregate.pairwise.bradley_terry",
    "CATD": "aggregate.numeric.catd",
    "CCC": "learn.ccc.ccc",
    "CCEM": "learn.ccem",
    "CMM": "learn.cmm.cmm",
    "CoNAL": "learn.conal",
    "Comparisons": "data.comparisons",
    "CompleterScore": "evaluate.completion",
    "Concord": "learn.concord",
    "CoupledView": "learn.coupled_view",
    "Crowd": "data.crowd",
    "CrowdAR": "learn.crowd_ar",
    "CrowdBradleyTerry": "aggregate.pairwise.crowd_bradley_terry",
    "CrowdLab": "learn.crowd_lab",
    "CrowdLayer": "learn.crowd_layer",
    "DEWSMV": "aggregate.categorical.dewsmv",
    "DLEM": "learn.dlem",
    "DSFill": "complete.ds_fill",
    "DSWorkerClusters": "aggregate.categorical.ds_worker_clusters",
    "DawidSkene": "aggregate.categorical.dawid_skene",
    "DoctorNet": "learn.doctor_net",
    "EBCC": "aggregate.categorical.ebcc",
    "Elo": "aggregate.pairwise.elo",
    "FastDS": "aggregate.categorical.fast_ds",
    "FixedDifficulty": "learn.difficulty.fixed_difficulty",
    "GIRT": "complete.girt",
    "GLAD": "aggregate.categorical.glad",
    "GMV": "complete.gmv",
    "GTIC": "aggregate.categorical.gtic",
    "GeoCrowdNet": "learn.geo_crowd_net",
    "GradedResponse": "aggregate.ordinal.graded_response",
    "HDS": "aggregate.categorical.hds",
    "HMMCrowd": "aggregate.structured.hmm_crowd",
    "IBCC": "aggregate.categorical.ibcc",
    "IWMV": "aggregate.categorical.iwmv",
    "JudgeAwareBradleyTerry": "aggregate.pairwise.judge_aware_bradley_terry",
    "KOS": "aggregate.categorical.kos",
    "LAGNN": "aggregate.categorical.lagnn",
    "LDPLC": "complete.ldplc",
    "LFC": "aggregate.categorical.lfc",
    "LabelPropagation": "aggregate.categorical.label_propagation",
    "LabelSetCrowd": "data.label_sets",
    "LabelSetMixture": "aggregate.multilabel.label_set_mixture",
    "MACE": "aggregate.categorical.mace",
    "MMLC": "learn.mmlc.mmlc",
    "MMLCFill": "complete.mmlc_fill",
    "MMSR": "aggregate.categorical.mmsr",
    "MNLDP": "aggregate.categorical.mnldp",
    "MaDL": "learn.madl",
    "MajorityVote": "aggregate.categorical.majority_vote",
    "MaskCrowd": "data.masks",
    "MaskEM": "aggregate.masks.mask_em",
    "MaskMajority": "aggregate.masks.mask_majority",
    "MaxMIG": "learn.max_mig",
    "Mean": "aggregate.numeric.mean",
    "Median": "aggregate.numeric.median",
    "MinimaxEntropy": "aggregate.categorical.minimax_entropy",
    "ModelAverage": "aggregate.categorical.model_average",
    "OneCoin": "aggregate.categorical.one_coin",
    "OrdinalDawidSkene": "aggregate.ordinal.ordinal_dawid_skene",
    "PM": "aggregate.numeric.pm",
    "Panel": "aggregate.categorical.panel.panel",
    "PointConsensus": "aggregate.structured.point_consensus",
    "PointCrowd": "data.points",
    "PolygonConsensus": "aggregate.structured.polygon_consensus",
    "PolygonCrowd": "data.polygons",
    "Rasch": "aggregate.categorical.rasch",
    "RaterMean": "aggregate.numeric.rater_mean",
    "Raykar": "learn.raykar",
    "Rover": "aggregate.text.rover",
    "ScoreCrowd": "data.scores",
    "ShardedCrowd": "data.sharded",
    "SpanConsensus": "aggregate.structured.span_consensus",
    "SpanCrowd": "data.spans",
    "Staple": "aggregate.masks.staple",
    "TDG4Crowd": "complete.tdg4crowd",
    "TLLC": "complete.tllc.tllc",
    "TextCrowd": "data.texts",
    "TextMedoid": "aggregate.text.text_medoid",
    "TraceReg": "learn.trace_reg",
    "TwoPL": "aggregate.categorical.two_pl",
    "TwoStage": "learn.two_stage",
    "UnionNet": "learn.union_net",
    "WSLC": "complete.wslc",
    "Wawa": "aggregate.categorical.wawa",
    "WeightedMean": "aggregate.numeric.weighted_mean",
    "WinRate": "aggregate.pairwise.win_rate",
    "ZenCrowd": "aggregate.categorical.zencrowd",
    "ZeroBasedSkill": "aggregate.categorical.zero_based_skill",
    "accuracy_after_completion": "evaluate.completion",
    "aum": "diagnose.margins",
    "check_votes": "io.validation.vote_checks",
    "choose_method": "evaluate.model_selection",
    "cite": "base.citations",
    "compare_methods": "evaluate.model_selection",
    "compute_error_rates": "evaluate.text_metrics",
    "density_curve": "evaluate.completion",
    "diagnose_marks": "diagnose.mark_diagnosis",
    "diagnose_masks": "diagnose.mask_diagnosis",
    "diagnose_texts": "diagnose.text_diagnosis",
    "draw_audit_sample": "evaluate.audit",
    "estimate_confidence": "evaluate.confidence",
    "evaluate_audit": "evaluate.audit",
    "diagnose_benchmark": "diagnose.benchmark_items",
    "diagnose_comparisons": "diagnose.comparison_diagnosis",
    "diagnose_crowd": "diagnose.diagnosis",
    "diagnose_judges": "diagnose.judge_diagnosis",
    "diagnose_label_sets": "diagnose.label_set_diagnosis",
    "diagnose_raters": "diagnose.raters",
    "fetch_dataset": "io.datasets",
    "find": "base.registry",
    "find_finished_tasks": "plan.stopping",
    "group_workers": "diagnose.groups",
    "intraclass_correlation": "diagnose.intraclass",
    "krippendorff_alpha": "diagnose.agreement",
    "list_datasets": "io.datasets",
    "load": "base.persistence",
    "load_dataset": "io.datasets",
    "methods": "base.registry",
    "plan_comparisons": "plan.pair_acquisition",
    "plan_votes": "plan.acquisition",
    "read": "io.vote_source",
    "read_boxes": "io.answer_tables",
    "read_comparisons": "io.answer_tables",
    "read_evaluation_log": "io.evaluations.evaluation_log",
    "read_features": "io.features",
    "read_label_sets": "io.answer_tables",
    "read_masks": "io.answer_tables",
    "read_points": "io.answer_tables",
    "read_polygons": "io.answer_tables",
    "read_scores": "io.answer_tables",
    "read_spans": "io.answer_tables",
    "read_texts": "io.answer_tables",
    "read_truth": "io.vote_source",
    "redundancy_curve": "evaluate.completion",
    "score_completer": "evaluate.completion",
    "score_masks": "evaluate.mask_metrics",
    "score_objects": "evaluate.object_metrics",
    "shard_files": "io.sharding",
    "simulate_boxes": "simulate.marks",
    "simulate_arena": "simulate.evaluations",
    "simulate_comparisons": "simulate.comparisons",
    "simulate_crowd": "simulate",
    "simulate_evaluation": "simulate.evaluations",
    "simulate_label_sets": "simulate.label_sets",
    "simulate_masks": "simulate.masks",
    "simulate_points": "simulate.marks",
    "simulate_polygons": "simulate.polygons",
    "simulate_ratings": "simulate.ratings",
    "simulate_scores": "simulate.scores",
    "simulate_spans": "simulate.marks",
    "simulate_texts": "simulate.texts",
    "vote_quality": "diagnose.votes",
    "waum": "diagnose.margins",
    "worker_agreement": "diagnose.agreement_matrix",
    "write": "io.vote_source",
}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:  # the same names, for type checkers and editors; a test holds the two lists together
    from wisecrowd.aggregate.categorical.aali import AALI as AALI
    from wisecrowd.aggregate.categorical.bwa import BWA as BWA
    from wisecrowd.aggregate.categorical.dawid_skene import DawidSkene as DawidSkene
    from wisecrowd.aggregate.categorical.dewsmv import DEWSMV as DEWSMV
    from wisecrowd.aggregate.categorical.ds_worker_clusters import DSWorkerClusters as DSWorkerClusters
    from wisecrowd.aggregate.categorical.ebcc import EBCC as EBCC
    from wisecrowd.aggregate.categorical.fast_ds import FastDS as FastDS
    from wisecrowd.aggregate.categorical.glad import GLAD as GLAD
    from wisecrowd.aggregate.categorical.gtic import GTIC as GTIC
    from wisecrowd.aggregate.categorical.hds import HDS as HDS
    from wisecrowd.aggregate.categorical.ibcc import IBCC as IBCC
    from wisecrowd.aggregate.categorical.iwmv import IWMV as IWMV
    from wisecrowd.aggregate.categorical.kos import KOS as KOS
    from wisecrowd.aggregate.categorical.label_propagation import LabelPropagation as LabelPropagation
    from wisecrowd.aggregate.categorical.lagnn import LAGNN as LAGNN
    from wisecrowd.aggregate.categorical.lfc import LFC as LFC
    from wisecrowd.aggregate.categorical.mace import MACE as MACE
    from wisecrowd.aggregate.categorical.majority_vote import MajorityVote as MajorityVote
    from wisecrowd.aggregate.categorical.minimax_entropy import MinimaxEntropy as MinimaxEntropy
    from wisecrowd.aggregate.categorical.mmsr import MMSR as MMSR
    from wisecrowd.aggregate.categorical.mnldp import MNLDP as MNLDP
    from wisecrowd.aggregate.categorical.model_average import ModelAverage as ModelAverage
    from wisecrowd.aggregate.categorical.one_coin import OneCoin as OneCoin
    from wisecrowd.aggregate.categorical.panel.panel import Panel as Panel
    from wisecrowd.aggregate.categorical.rasch import Rasch as Rasch
    from wisecrowd.aggregate.categorical.two_pl import TwoPL as TwoPL
    from wisecrowd.aggregate.categorical.wawa import Wawa as Wawa
    from wisecrowd.aggregate.categorical.zencrowd import ZenCrowd as ZenCrowd
    from wisecrowd.aggregate.categorical.zero_based_skill import ZeroBasedSkill as ZeroBasedSkill
    from wisecrowd.aggregate.masks.mask_em import MaskEM as MaskEM
    from wisecrowd.aggregate.masks.mask_majority import MaskMajority as MaskMajority
    from wisecrowd.aggregate.masks.staple import Staple as Staple
    from wisecrowd.aggregate.multilabel.binary_relevance import BinaryRelevance as BinaryRelevance
    from wisecrowd.aggregate.multilabel.label_set_mixture import LabelSetMixture as LabelSetMixture
    from wisecrowd.aggregate.numeric.catd import CATD as CATD
    from wisecrowd.aggregate.numeric.mean import Mean as Mean
    from wisecrowd.aggregate.numeric.median import Median as Median
    from wisecrowd.aggregate.numeric.pm import PM as PM
    from wisecrowd.aggregate.numeric.rater_mean import RaterMean as RaterMean
    from wisecrowd.aggregate.numeric.weighted_mean import WeightedMean as WeightedMean
    from wisecrowd.aggregate.ordinal.graded_response import GradedResponse as GradedResponse
    from wisecrowd.aggregate.ordinal.ordinal_dawid_skene import OrdinalDawidSkene as OrdinalDawidSkene
    from wisecrowd.aggregate.pairwise.bradley_terry import BradleyTerry as BradleyTerry
    from wisecrowd.aggregate.pairwise.crowd_bradley_terry import CrowdBradleyTerry as CrowdBradleyTerry
    from wisecrowd.aggregate.pairwise.elo import Elo as Elo
    from wisecrowd.aggregate.pairwise.judge_aware_bradley_terry import JudgeAwareBradleyTerry as JudgeAwareBradleyTerry
    from wisecrowd.aggregate.pairwise.win_rate import WinRate as WinRate
    from wisecrowd.aggregate.structured.bayesian_sequence import BayesianSequence as BayesianSequence
    from wisecrowd.aggregate.structured.box_consensus import BoxConsensus as BoxConsensus
    from wisecrowd.aggregate.structured.hmm_crowd import HMMCrowd as HMMCrowd
    from wisecrowd.aggregate.structured.point_consensus import PointConsensus as PointConsensus
    from wisecrowd.aggregate.structured.polygon_consensus import PolygonConsensus as PolygonConsensus
    from wisecrowd.aggregate.structured.span_consensus import SpanConsensus as SpanConsensus
    from wisecrowd.aggregate.text.rover import Rover as Rover
    from wisecrowd.aggregate.text.text_medoid import TextMedoid as TextMedoid
    from wisecrowd.base.citations import cite as cite
    from wisecrowd.base.persistence import load as load
    from wisecrowd.base.registry import find as find
    from wisecrowd.base.registry import methods as methods
    from wisecrowd.complete.ds_fill import DSFill as DSFill
    from wisecrowd.complete.girt import GIRT as GIRT
    from wisecrowd.complete.gmv import GMV as GMV
    from wisecrowd.complete.ldplc import LDPLC as LDPLC
    from wisecrowd.complete.mmlc_fill import MMLCFill as MMLCFill
    from wisecrowd.complete.tdg4crowd import TDG4Crowd as TDG4Crowd
    from wisecrowd.complete.tllc.tllc import TLLC as TLLC
    from wisecrowd.complete.wslc import WSLC as WSLC
    from wisecrowd.data.boxes import BoxCrowd as BoxCrowd
    from wisecrowd.data.comparisons import Comparisons as Comparisons
    from wisecrowd.data.crowd import Crowd as Crowd
    from wisecrowd.data.label_sets import LabelSetCrowd as LabelSetCrowd
    from wisecrowd.data.masks import MaskCrowd as MaskCrowd
    from wisecrowd.data.points import PointCrowd as PointCrowd
    from wisecrowd.data.polygons import PolygonCrowd as PolygonCrowd
    from wisecrowd.data.scores import ScoreCrowd as ScoreCrowd
    from wisecrowd.data.sharded import ShardedCrowd as ShardedCrowd
    from wisecrowd.data.spans import SpanCrowd as SpanCrowd
    from wisecrowd.data.texts import TextCrowd as TextCrowd
    from wisecrowd.diagnose.agreement import krippendorff_alpha as krippendorff_alpha
    from wisecrowd.diagnose.agreement_matrix import worker_agreement as worker_agreement
    from wisecrowd.diagnose.benchmark_items import diagnose_benchmark as diagnose_benchmark
    from wisecrowd.diagnose.comparison_diagnosis import diagnose_comparisons as diagnose_comparisons
    from wisecrowd.diagnose.diagnosis import diagnose_crowd as diagnose_crowd
    from wisecrowd.diagnose.groups import group_workers as group_workers
    from wisecrowd.diagnose.intraclass import intraclass_correlation as intraclass_correlation
    from wisecrowd.diagnose.judge_diagnosis import diagnose_judges as diagnose_judges
    from wisecrowd.diagnose.label_set_diagnosis import diagnose_label_sets as diagnose_label_sets
    from wisecrowd.diagnose.margins import aum as aum
    from wisecrowd.diagnose.margins import waum as waum
    from wisecrowd.diagnose.mark_diagnosis import diagnose_marks as diagnose_marks
    from wisecrowd.diagnose.mask_diagnosis import diagnose_masks as diagnose_masks
    from wisecrowd.diagnose.raters import diagnose_raters as diagnose_raters
    from wisecrowd.diagnose.text_diagnosis import diagnose_texts as diagnose_texts
    from wisecrowd.diagnose.votes import vote_quality as vote_quality
    from wisecrowd.evaluate.audit import draw_audit_sample as draw_audit_sample
    from wisecrowd.evaluate.audit import evaluate_audit as evaluate_audit
    from wisecrowd.evaluate.completion import CompleterScore as CompleterScore
    from wisecrowd.evaluate.completion import accuracy_after_completion as accuracy_after_completion
    from wisecrowd.evaluate.completion import density_curve as density_curve
    from wisecrowd.evaluate.completion import redundancy_curve as redundancy_curve
    from wisecrowd.evaluate.completion import score_completer as score_completer
    from wisecrowd.evaluate.confidence import estimate_confidence as estimate_confidence
    from wisecrowd.evaluate.mask_metrics import score_masks as score_masks
    from wisecrowd.evaluate.model_selection import choose_method as choose_method
    from wisecrowd.evaluate.model_selection import compare_methods as compare_methods
    from wisecrowd.evaluate.object_metrics import score_objects as score_objects
    from wisecrowd.evaluate.text_metrics import compute_error_rates as compute_error_rates
    from wisecrowd.io.answer_tables import read_boxes as read_boxes
    from wisecrowd.io.answer_tables import read_comparisons as read_comparisons
    from wisecrowd.io.answer_tables import read_label_sets as read_label_sets
    from wisecrowd.io.answer_tables import read_masks as read_masks
    from wisecrowd.io.answer_tables import read_points as read_points
    from wisecrowd.io.answer_tables import read_polygons as read_polygons
    from wisecrowd.io.answer_tables import read_scores as read_scores
    from wisecrowd.io.answer_tables import read_spans as read_spans
    from wisecrowd.io.answer_tables import read_texts as read_texts
    from wisecrowd.io.datasets import fetch_dataset as fetch_dataset
    from wisecrowd.io.datasets import list_datasets as list_datasets
    from wisecrowd.io.datasets import load_dataset as load_dataset
    from wisecrowd.io.evaluations.evaluation_log import read_evaluation_log as read_evaluation_log
    from wisecrowd.io.features import read_features as read_features
    from wisecrowd.io.sharding import shard_files as shard_files
    from wisecrowd.io.validation.vote_checks import check_votes as check_votes
    from wisecrowd.io.vote_source import read as read
    from wisecrowd.io.vote_source import read_truth as read_truth
    from wisecrowd.io.vote_source import write as write
    from wisecrowd.learn.annot_mix import AnnotMix as AnnotMix
    from wisecrowd.learn.ccc.ccc import CCC as CCC
    from wisecrowd.learn.ccem import CCEM as CCEM
    from wisecrowd.learn.cmm.cmm import CMM as CMM
    from wisecrowd.learn.conal import CoNAL as CoNAL
    from wisecrowd.learn.concord import Concord as Concord
    from wisecrowd.learn.coupled_view import CoupledView as CoupledView
    from wisecrowd.learn.crowd_ar import CrowdAR as CrowdAR
    from wisecrowd.learn.crowd_lab import CrowdLab as CrowdLab
    from wisecrowd.learn.crowd_layer import CrowdLayer as CrowdLayer
    from wisecrowd.learn.difficulty.adaptive_difficulty import AdaptiveDifficulty as AdaptiveDifficulty
    from wisecrowd.learn.difficulty.fixed_difficulty import FixedDifficulty as FixedDifficulty
    from wisecrowd.learn.dlem import DLEM as DLEM
    from wisecrowd.learn.doctor_net import DoctorNet as DoctorNet
    from wisecrowd.learn.geo_crowd_net import GeoCrowdNet as GeoCrowdNet
    from wisecrowd.learn.madl import MaDL as MaDL
    from wisecrowd.learn.max_mig import MaxMIG as MaxMIG
    from wisecrowd.learn.mmlc.mmlc import MMLC as MMLC
    from wisecrowd.learn.raykar import Raykar as Raykar
    from wisecrowd.learn.trace_reg import TraceReg as TraceReg
    from wisecrowd.learn.two_stage import TwoStage as TwoStage
    from wisecrowd.learn.union_net import UnionNet as UnionNet
    from wisecrowd.plan.acquisition import plan_votes as plan_votes
    from wisecrowd.plan.pair_acquisition import plan_comparisons as plan_comparisons
    from wisecrowd.plan.stopping import find_finished_tasks as find_finished_tasks
    from wisecrowd.simulate import simulate_crowd as simulate_crowd
    from wisecrowd.simulate.comparisons import simulate_comparisons as simulate_comparisons
    from wisecrowd.simulate.evaluations import simulate_arena as simulate_arena
    from wisecrowd.simulate.evaluations import simulate_evaluation as simulate_evaluation
    from wisecrowd.simulate.label_sets import simulate_label_sets as simulate_label_sets
    from wisecrowd.simulate.marks import simulate_boxes as simulate_boxes
    from wisecrowd.simulate.marks import simulate_points as simulate_points
    from wisecrowd.simulate.marks import simulate_spans as simulate_spans
    from wisecrowd.simulate.masks import simulate_masks as simulate_masks
    from wisecrowd.simulate.polygons import simulate_polygons as simulate_polygons
    from wisecrowd.simulate.ratings import simulate_ratings as simulate_ratings
    from wisecrowd.simulate.scores import simulate_scores as simulate_scores
    from wisecrowd.simulate.texts import simulate_texts as simulate_texts


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'wisecrowd' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"wisecrowd.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
