"""Diagnosis of workers and tasks, and agreement of a crowd."""

from wisecrowd.diagnose.agreement_matrix import WorkerAgreement, worker_agreement
from wisecrowd.diagnose.benchmark_items import BenchmarkDiagnosis, diagnose_benchmark
from wisecrowd.diagnose.comparison_diagnosis import ComparisonDiagnosis, diagnose_comparisons
from wisecrowd.diagnose.diagnosis import Diagnosis, diagnose_crowd
from wisecrowd.diagnose.groups import WorkerGroups, group_workers
from wisecrowd.diagnose.judge_diagnosis import JudgeDiagnosis, diagnose_judges
from wisecrowd.diagnose.label_set_diagnosis import LabelSetDiagnosis, diagnose_label_sets
from wisecrowd.diagnose.mark_diagnosis import MarkDiagnosis, diagnose_marks
from wisecrowd.diagnose.mask_diagnosis import MaskDiagnosis, diagnose_masks
from wisecrowd.diagnose.raters import RaterDiagnosis, diagnose_raters
from wisecrowd.diagnose.tasks import TASK_KINDS, TaskDiagnosis
from wisecrowd.diagnose.text_diagnosis import TextDiagnosis, diagnose_texts
from wisecrowd.diagnose.votes import vote_quality
from wisecrowd.diagnose.workers import WorkerDiagnosis

__all__ = [
    "TASK_KINDS",
    "BenchmarkDiagnosis",
    "ComparisonDiagnosis",
    "Diagnosis",
    "JudgeDiagnosis",
    "LabelSetDiagnosis",
    "MarkDiagnosis",
    "MaskDiagnosis",
    "RaterDiagnosis",
    "TaskDiagnosis",
    "TextDiagnosis",
    "WorkerAgreement",
    "WorkerDiagnosis",
    "WorkerGroups",
    "diagnose_benchmark",
    "diagnose_comparisons",
    "diagnose_crowd",
    "diagnose_judges",
    "diagnose_label_sets",
    "diagnose_marks",
    "diagnose_masks",
    "diagnose_raters",
    "diagnose_texts",
    "group_workers",
    "vote_quality",
    "worker_agreement",
]
