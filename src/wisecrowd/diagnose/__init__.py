"""Diagnosis of workers and tasks, and agreement of a crowd."""

from wisecrowd.diagnose.diagnosis import Diagnosis, diagnose_crowd
from wisecrowd.diagnose.groups import WorkerGroups, group_workers
from wisecrowd.diagnose.tasks import TASK_KINDS, TaskDiagnosis
from wisecrowd.diagnose.workers import WorkerDiagnosis

__all__ = [
    "TASK_KINDS",
    "Diagnosis",
    "TaskDiagnosis",
    "WorkerDiagnosis",
    "WorkerGroups",
    "diagnose_crowd",
    "group_workers",
]
