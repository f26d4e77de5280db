"""Diagnosis of workers and tasks, and agreement of a crowd."""

from wisecrowd.diagnose.diagnosis import Diagnosis, diagnose_crowd
from wisecrowd.diagnose.groups import WorkerGroups, group_workers
from wisecrowd.diagnose.raters import RaterDiagnosis, diagnose_raters
from wisecrowd.diagnose.tasks import TASK_KINDS, TaskDiagnosis
from wisecrowd.diagnose.workers import WorkerDiagnosis

__all__ = [
    "TASK_KINDS",
    "Diagnosis",
    "RaterDiagnosis",
    "TaskDiagnosis",
    "WorkerDiagnosis",
    "WorkerGroups",
    "diagnose_crowd",
    "diagnose_raters",
    "group_workers",
]
