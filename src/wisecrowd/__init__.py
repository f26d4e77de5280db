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

__version__ = "0.1.0"

#: Public name -> the module that defines it.
_HOME = {
    "AALI": "aggregate.aali",
    "AdaptiveDifficulty": "learn.adaptive_difficulty",
    "AnnotMix": "learn.annot_mix",
    "BWA": "aggregate.bwa",
    "CATD": "aggregate.catd",
    "CCC": "learn.ccc",
    "CCEM": "learn.ccem",
    "CMM": "learn.cmm",
    "CoNAL": "learn.conal",
    "Concord": "learn.concord",
    "CoupledView": "learn.coupled_view",
    "Crowd": "crowd",
    "CrowdAR": "learn.crowd_ar",
    "CrowdLab": "learn.crowd_lab",
    "CrowdLayer": "learn.crowd_layer",
    "DEWSMV": "aggregate.dewsmv",
    "DLEM": "learn.dlem",
    "DSFill": "complete.ds_fill",
    "DSWorkerClusters": "aggregate.ds_worker_clusters",
    "DawidSkene": "aggregate.dawid_skene",
    "DoctorNet": "learn.doctor_net",
    "EBCC": "aggregate.ebcc",
    "FastDS": "aggregate.fast_ds",
    "FixedDifficulty": "learn.fixed_difficulty",
    "GIRT": "complete.girt",
    "GLAD": "aggregate.glad",
    "GMV": "complete.gmv",
    "GTIC": "aggregate.gtic",
    "GeoCrowdNet": "learn.geo_crowd_net",
    "HDS": "aggregate.hds",
    "IBCC": "aggregate.ibcc",
    "IWMV": "aggregate.iwmv",
    "Judgement": "judging",
    "KOS": "aggregate.kos",
    "LAGNN": "aggregate.lagnn",
    "LDPLC": "complete.ldplc",
    "LFC": "aggregate.lfc",
    "LabelPropagation": "aggregate.label_propagation",
    "MACE": "aggregate.mace",
    "MMLC": "learn.mmlc",
    "MMLCFill": "complete.mmlc_fill",
    "MMSR": "aggregate.mmsr",
    "MNLDP": "aggregate.mnldp",
    "MaDL": "learn.madl",
    "MajorityVote": "aggregate.majority_vote",
    "MaxMIG": "learn.max_mig",
    "Mean": "aggregate.mean",
    "Median": "aggregate.median",
    "MinimaxEntropy": "aggregate.minimax_entropy",
    "OneCoin": "aggregate.one_coin",
    "PM": "aggregate.pm",
    "Panel": "aggregate.panel",
    "Rasch": "aggregate.rasch",
    "Raykar": "learn.raykar",
    "ShardedCrowd": "shards",
    "TDG4Crowd": "complete.tdg4crowd",
    "TLLC": "complete.tllc",
    "TraceReg": "learn.trace_reg",
    "TwoPL": "aggregate.two_pl",
    "TwoStage": "learn.two_stage",
    "UnionNet": "learn.union_net",
    "WSLC": "complete.wslc",
    "Wawa": "aggregate.wawa",
    "WeightedMean": "aggregate.weighted_mean",
    "ZenCrowd": "aggregate.zencrowd",
    "ZeroBasedSkill": "aggregate.zero_based_skill",
    "after_filling": "judging",
    "aum": "diagnose.margins",
    "choose": "diagnose.choosing",
    "cite": "citation",
    "compare": "diagnose.choosing",
    "density_curve": "judging",
    "diagnosis": "diagnose",
    "examine": "doctor",
    "fetch_dataset": "datasets",
    "find": "registry",
    "judge": "judging",
    "krippendorff_alpha": "diagnose.agreement",
    "list_datasets": "datasets",
    "load": "persist",
    "load_dataset": "datasets",
    "may_stop": "diagnose.planning",
    "methods": "registry",
    "plan": "diagnose.planning",
    "read": "io",
    "read_features": "io.features",
    "read_truth": "io",
    "redundancy_curve": "judging",
    "shard_files": "sharding",
    "simulate_crowd": "simulate",
    "waum": "diagnose.margins",
    "worker_groups": "diagnose.groups",
    "write": "io",
}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:  # the same names, for type checkers and editors; a test holds the two lists together
    from wisecrowd.aggregate.aali import AALI as AALI
    from wisecrowd.aggregate.bwa import BWA as BWA
    from wisecrowd.aggregate.catd import CATD as CATD
    from wisecrowd.aggregate.dawid_skene import DawidSkene as DawidSkene
    from wisecrowd.aggregate.dewsmv import DEWSMV as DEWSMV
    from wisecrowd.aggregate.ds_worker_clusters import DSWorkerClusters as DSWorkerClusters
    from wisecrowd.aggregate.ebcc import EBCC as EBCC
    from wisecrowd.aggregate.fast_ds import FastDS as FastDS
    from wisecrowd.aggregate.glad import GLAD as GLAD
    from wisecrowd.aggregate.gtic import GTIC as GTIC
    from wisecrowd.aggregate.hds import HDS as HDS
    from wisecrowd.aggregate.ibcc import IBCC as IBCC
    from wisecrowd.aggregate.iwmv import IWMV as IWMV
    from wisecrowd.aggregate.kos import KOS as KOS
    from wisecrowd.aggregate.label_propagation import LabelPropagation as LabelPropagation
    from wisecrowd.aggregate.lagnn import LAGNN as LAGNN
    from wisecrowd.aggregate.lfc import LFC as LFC
    from wisecrowd.aggregate.mace import MACE as MACE
    from wisecrowd.aggregate.majority_vote import MajorityVote as MajorityVote
    from wisecrowd.aggregate.mean import Mean as Mean
    from wisecrowd.aggregate.median import Median as Median
    from wisecrowd.aggregate.minimax_entropy import MinimaxEntropy as MinimaxEntropy
    from wisecrowd.aggregate.mmsr import MMSR as MMSR
    from wisecrowd.aggregate.mnldp import MNLDP as MNLDP
    from wisecrowd.aggregate.one_coin import OneCoin as OneCoin
    from wisecrowd.aggregate.panel import Panel as Panel
    from wisecrowd.aggregate.pm import PM as PM
    from wisecrowd.aggregate.rasch import Rasch as Rasch
    from wisecrowd.aggregate.two_pl import TwoPL as TwoPL
    from wisecrowd.aggregate.wawa import Wawa as Wawa
    from wisecrowd.aggregate.weighted_mean import WeightedMean as WeightedMean
    from wisecrowd.aggregate.zencrowd import ZenCrowd as ZenCrowd
    from wisecrowd.aggregate.zero_based_skill import ZeroBasedSkill as ZeroBasedSkill
    from wisecrowd.citation import cite as cite
    from wisecrowd.complete.ds_fill import DSFill as DSFill
    from wisecrowd.complete.girt import GIRT as GIRT
    from wisecrowd.complete.gmv import GMV as GMV
    from wisecrowd.complete.ldplc import LDPLC as LDPLC
    from wisecrowd.complete.mmlc_fill import MMLCFill as MMLCFill
    from wisecrowd.complete.tdg4crowd import TDG4Crowd as TDG4Crowd
    from wisecrowd.complete.tllc import TLLC as TLLC
    from wisecrowd.complete.wslc import WSLC as WSLC
    from wisecrowd.crowd import Crowd as Crowd
    from wisecrowd.datasets import fetch_dataset as fetch_dataset
    from wisecrowd.datasets import list_datasets as list_datasets
    from wisecrowd.datasets import load_dataset as load_dataset
    from wisecrowd.diagnose import diagnosis as diagnosis
    from wisecrowd.diagnose.agreement import krippendorff_alpha as krippendorff_alpha
    from wisecrowd.diagnose.choosing import choose as choose
    from wisecrowd.diagnose.choosing import compare as compare
    from wisecrowd.diagnose.groups import worker_groups as worker_groups
    from wisecrowd.diagnose.margins import aum as aum
    from wisecrowd.diagnose.margins import waum as waum
    from wisecrowd.diagnose.planning import may_stop as may_stop
    from wisecrowd.diagnose.planning import plan as plan
    from wisecrowd.doctor import examine as examine
    from wisecrowd.io import read as read
    from wisecrowd.io import read_truth as read_truth
    from wisecrowd.io import write as write
    from wisecrowd.io.features import read_features as read_features
    from wisecrowd.judging import Judgement as Judgement
    from wisecrowd.judging import after_filling as after_filling
    from wisecrowd.judging import density_curve as density_curve
    from wisecrowd.judging import judge as judge
    from wisecrowd.judging import redundancy_curve as redundancy_curve
    from wisecrowd.learn.adaptive_difficulty import AdaptiveDifficulty as AdaptiveDifficulty
    from wisecrowd.learn.annot_mix import AnnotMix as AnnotMix
    from wisecrowd.learn.ccc import CCC as CCC
    from wisecrowd.learn.ccem import CCEM as CCEM
    from wisecrowd.learn.cmm import CMM as CMM
    from wisecrowd.learn.conal import CoNAL as CoNAL
    from wisecrowd.learn.concord import Concord as Concord
    from wisecrowd.learn.coupled_view import CoupledView as CoupledView
    from wisecrowd.learn.crowd_ar import CrowdAR as CrowdAR
    from wisecrowd.learn.crowd_lab import CrowdLab as CrowdLab
    from wisecrowd.learn.crowd_layer import CrowdLayer as CrowdLayer
    from wisecrowd.learn.dlem import DLEM as DLEM
    from wisecrowd.learn.doctor_net import DoctorNet as DoctorNet
    from wisecrowd.learn.fixed_difficulty import FixedDifficulty as FixedDifficulty
    from wisecrowd.learn.geo_crowd_net import GeoCrowdNet as GeoCrowdNet
    from wisecrowd.learn.madl import MaDL as MaDL
    from wisecrowd.learn.max_mig import MaxMIG as MaxMIG
    from wisecrowd.learn.mmlc import MMLC as MMLC
    from wisecrowd.learn.raykar import Raykar as Raykar
    from wisecrowd.learn.trace_reg import TraceReg as TraceReg
    from wisecrowd.learn.two_stage import TwoStage as TwoStage
    from wisecrowd.learn.union_net import UnionNet as UnionNet
    from wisecrowd.persist import load as load
    from wisecrowd.registry import find as find
    from wisecrowd.registry import methods as methods
    from wisecrowd.sharding import shard_files as shard_files
    from wisecrowd.shards import ShardedCrowd as ShardedCrowd
    from wisecrowd.simulate import simulate_crowd as simulate_crowd


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'wisecrowd' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"wisecrowd.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
