"""Items to evaluate: outputs of systems with scores of judges and, for some of them, labels of people."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.arrow_tables import DataFrameLike, as_table
from wisecrowd.errors import DataWarning, InputError, UsageError, preview, suggest_name
from wisecrowd.utils.text import count_noun

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Scores of judges: a long table with the columns task, judge and score, or a wide one with a column for each judge.
ScoresLike: TypeAlias = DataFrameLike
#: Labels of people: a table with the columns task and label, or a Series by task.
LabelsLike: TypeAlias = "DataFrameLike | pd.Series[Any]"

#: Name of the system if a table names none.
ONLY_SYSTEM = "all"
#: Name of the rater if a table names none.
ONLY_RATER = ""
#: Judges beyond which scores are averaged first: the table of items by judges would be larger than the scores.
MAX_JUDGES = 500
#: Names of columns that are accepted beside ours, by role.
ALIASES = {
    "task": ("task", "item", "id"),
    "judge": ("judge", "worker", "scorer", "rater"),
    "score": ("score", "label", "value"),
    "rater": ("rater", "worker", "annotator", "judge"),
    "label": ("label", "score", "truth", "value"),
    "system": ("system", "model"),
    "cluster": ("cluster", "prompt"),
    "stratum": ("stratum",),
    "inclusion": ("inclusion",),
}
_TRUE_WORDS, _FALSE_WORDS = ("true", "yes", "pass", "passed", "correct"), ("false", "no", "fail", "failed", "incorrect")


@dataclass(frozen=True, eq=False)
class EvaluationItems:
    """Items with scores of judges, and with labels of people where there are any.

    An item is one output of one system. Arrays have one row per item unless stated otherwise.

    Attributes
    ----------
    system : ndarray of int of shape (n_items,)
        Position in ``systems``.
    systems : Index
        Names of the systems.
    task : Index of length n_items
        Task of each item.
    cluster : ndarray of int of shape (n_items,)
        Cluster of each item; items of a cluster may depend on each other.
    stratum : ndarray of int of shape (n_items,)
        Stratum from which items were sampled for labelling.
    scores : ndarray of shape (n_items, n_judges)
        Mean score by each judge; nan if there is none.
    judges : Index
        Names of the judges.
    label : ndarray of shape (n_items,)
        Mean label of the people who labelled the item; nan if nobody did.
    inclusion : ndarray of shape (n_items,) or None
        Probability that the item was chosen for labelling. None means equal probabilities within a stratum of a system.
    rating_item, rating_rater : ndarray of int of shape (n_ratings,)
        Item and rater of each label.
    rating : ndarray of shape (n_ratings,)
        Labels.
    raters : Index
        Names of the raters.

    Examples
    --------
    >>> scores = {"task": ["t1", "t2", "t3"], "judge": ["gpt"] * 3, "score": [0.9, 0.2, 0.4]}
    >>> items = EvaluationItems.from_tables(scores, {"task": ["t1", "t2"], "label": [1, 0]})
    >>> items.n_items, items.n_labelled
    (3, 2)
    """

    system: Codes
    systems: pd.Index
    task: pd.Index
    cluster: Codes
    stratum: Codes
    scores: Array
    judges: pd.Index
    label: Array
    inclusion: Array | None
    rating_item: Codes
    rating_rater: Codes
    rating: Array
    raters: pd.Index

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.system)

    @property
    def is_labelled(self) -> NDArray[np.bool_]:
        """Mask of the items that people labelled."""
        return ~np.isnan(self.label)

    @property
    def n_labelled(self) -> int:
        """Number of items with labels of people."""
        return int(self.is_labelled.sum())

    @property
    def is_share(self) -> bool:
        """True if labels lie between 0 and 1, so that their mean is a rate."""
        return bool(len(self.rating) and self.rating.min() >= 0 and self.rating.max() <= 1)

    @property
    def is_binary(self) -> bool:
        """True if all labels are 0 or 1."""
        return bool(len(self.rating) and np.isin(self.rating, (0.0, 1.0)).all())

    @classmethod
    def from_tables(
        cls,
        scores: ScoresLike,
        labels: LabelsLike,
        *,
        items: DataFrameLike | None = None,
        positive: Any = None,
    ) -> EvaluationItems:
        """Join scores, labels and the design by task and system.

        Parameters
        ----------
        scores : table
            Scores of judges. Long, with the columns task, judge and score, and optionally system, cluster, stratum and
            inclusion. Or wide: a DataFrame indexed by task with a column for each judge. Repeated scores of a judge are averaged.
        labels : table or Series
            Labels of people: task and label, optionally rater and system. Several raters per item are welcome.
        items : table, optional
            Design: task, optionally system, and any of cluster, stratum and inclusion.
        positive : object, optional
            Label whose rate is estimated, for labels that are words: ``positive="toxic"``.

        Returns
        -------
        EvaluationItems

        Raises
        ------
        InputError
            If columns are missing, labels are no numbers, or labels and scores have no task in common.
        """
        score_rows = _read_scores(scores, positive)
        label_rows = _read_labels(labels, positive)
        if "system" in score_rows and "system" not in label_rows:
            label_rows = _spread_over_systems(label_rows, score_rows)
        elif "system" in label_rows and "system" not in score_rows:
            raise InputError(
                "labels name systems and scores do not; add the column system to the scores, or leave it out of the labels"
            )
        for rows in (score_rows, label_rows):
            if "system" not in rows:
                rows["system"] = ONLY_SYSTEM
        common = pd.MultiIndex.from_frame(score_rows[["system", "task"]]).unique()
        labelled = pd.MultiIndex.from_frame(label_rows[["system", "task"]]).unique()
        if len(common) and len(labelled) and not labelled.isin(common).any():
            raise InputError(
                f"no labelled item has scores of judges: labels name {preview(labelled.unique('task'))} and scores "
                f"{preview(common.unique('task'))}; use the same task (and system) ids in both tables"
            )
        keys = common.union(labelled)
        system, systems = pd.factorize(keys.get_level_values("system"), sort=True)
        matrix, judges = _spread_scores(score_rows, keys)
        rating_item = keys.get_indexer(pd.MultiIndex.from_frame(label_rows[["system", "task"]])).astype(np.int64)
        rater, raters = pd.factorize(label_rows.get("rater", pd.Series(ONLY_RATER, index=label_rows.index)), sort=True)
        rating = label_rows["label"].to_numpy(dtype=np.float64)
        design = _read_design(keys, items, score_rows, label_rows)
        cluster = design.get("cluster")
        if cluster is None:  # outputs of several systems for one task depend on each other
            cluster = keys.get_level_values("task")
        stratum = design.get("stratum", np.zeros(len(keys)))
        return cls(
            system=system.astype(np.int64),
            systems=pd.Index(systems, name="system"),
            task=keys.get_level_values("task"),
            cluster=pd.factorize(cluster)[0].astype(np.int64),
            stratum=pd.factorize(stratum, sort=True)[0].astype(np.int64),
            scores=matrix,
            judges=judges,
            label=_mean_by(rating_item, rating, len(keys)),
            inclusion=design.get("inclusion"),
            rating_item=rating_item,
            rating_rater=rater.astype(np.int64),
            rating=rating,
            raters=pd.Index(raters, name="rater"),
        )

    @classmethod
    def from_arrays(
        cls,
        scores: Array,
        label: Array,
        *,
        cluster: Codes | None = None,
        stratum: Codes | None = None,
        inclusion: Array | None = None,
    ) -> EvaluationItems:
        """Return the items of one system with one label per labelled item.

        Parameters
        ----------
        scores : ndarray of shape (n_items, n_judges)
            Scores, nan where absent.
        label : ndarray of shape (n_items,)
            Labels, nan where absent.
        cluster, stratum : ndarray of int of shape (n_items,), optional
            Clusters and strata.
        inclusion : ndarray of shape (n_items,), optional
            Probabilities of being labelled.

        Returns
        -------
        EvaluationItems
        """
        n = len(label)
        labelled = np.flatnonzero(~np.isnan(label))
        zeros = np.zeros(n, dtype=np.int64)
        return cls(
            system=zeros, systems=pd.Index([ONLY_SYSTEM], name="system"), task=pd.RangeIndex(n, name="task"),
            cluster=np.arange(n) if cluster is None else cluster, stratum=zeros if stratum is None else stratum,
            scores=scores, judges=pd.RangeIndex(scores.shape[1], name="judge"), label=label, inclusion=inclusion,
            rating_item=labelled, rating_rater=np.zeros(len(labelled), dtype=np.int64), rating=label[labelled],
            raters=pd.Index([ONLY_RATER], name="rater"),
        )  # fmt: skip

    def select_systems(self, names: list[str]) -> EvaluationItems:
        """Return the items of some systems, in the order of their names here.

        Parameters
        ----------
        names : list of str
            Names of systems.

        Returns
        -------
        EvaluationItems

        Raises
        ------
        UsageError
            If a system does not exist.
        """
        for name in names:
            if name not in self.systems:
                raise UsageError(
                    f"there is no system {name!r}; the systems are {preview(self.systems, 8)}.{suggest_name(name, self.systems)}"
                )
        new_code = np.full(len(self.systems), -1, dtype=np.int64)
        new_code[self.systems.get_indexer(pd.Index(names))] = np.arange(len(names))
        is_selected = new_code[self.system] >= 0
        position = np.cumsum(is_selected) - 1
        of_selected = is_selected[self.rating_item]
        return replace(
            self,
            system=new_code[self.system[is_selected]],
            systems=pd.Index(names, name="system"),
            task=self.task[is_selected],
            cluster=self.cluster[is_selected],
            stratum=self.stratum[is_selected],
            scores=self.scores[is_selected],
            label=self.label[is_selected],
            inclusion=None if self.inclusion is None else self.inclusion[is_selected],
            rating_item=position[self.rating_item[of_selected]],
            rating_rater=self.rating_rater[of_selected],
            rating=self.rating[of_selected],
        )


def _find_column(table: pd.DataFrame, role: str) -> str | None:
    return next((name for name in ALIASES[role] if name in table.columns), None)


def _as_text_ids(values: pd.Series[Any], role: str) -> pd.Series[Any]:
    """Return ids as text; a task 7 of one table is the task "7" of another."""
    if values.isna().any():
        raise InputError(
            f"{count_noun(int(values.isna().sum()), 'row')} without a {role}; fill it in or drop these rows"
        )
    if values.dtype.kind == "f" and (values == np.floor(values)).all():
        values = values.astype(np.int64)
    return values.astype(str)


def _read_ids(table: pd.DataFrame, roles: tuple[str, ...], optional: tuple[str, ...], noun: str) -> dict[str, Any]:
    """Return the id columns of a table by role."""
    columns: dict[str, Any] = {}
    for role in (*roles, *optional):
        name = _find_column(table, role)
        if name is not None and name not in columns.values():
            columns[role] = name
        elif role in roles:
            raise InputError(
                f"{noun} need a column {role}; the columns are {preview(table.columns, 12)}. Rename yours to {role}"
            )
    return columns


def _read_numbers(values: pd.Series[Any], positive: Any, noun: str) -> Array:
    """Return labels or scores as numbers; words are compared with the positive label."""
    if positive is not None:
        is_positive = (values.astype(str) == str(positive)).to_numpy()
        is_number = noun == "score" and pd.to_numeric(values, errors="coerce").notna().all()
        if not is_positive.any() and noun == "label":
            raise InputError(f"no label is {positive!r}; the labels are {preview(values.astype(str).unique(), 8)}")
        if is_positive.any() or not is_number:  # scores such as grades stay numbers, although labels are words
            return is_positive.astype(np.float64)
    if values.dtype == bool:
        return values.to_numpy(dtype=np.float64)
    numbers = pd.to_numeric(values, errors="coerce")
    if numbers.isna().any() and not pd.api.types.is_numeric_dtype(values):
        words = values.astype(str).str.strip().str.lower()
        number_of_word = dict.fromkeys(_TRUE_WORDS, 1.0) | dict.fromkeys(_FALSE_WORDS, 0.0)
        numbers = numbers.fillna(words.map(number_of_word))
    invalid = ~np.isfinite(numbers.to_numpy(dtype=np.float64))
    if invalid.any():
        raise InputError(
            f"{count_noun(int(invalid.sum()), noun)} {'is' if invalid.sum() == 1 else 'are'} no number, such as "
            f"{preview(values[invalid].astype(str).unique())}; give numbers, true and false, or name the class whose rate "
            'you want: positive="toxic"'
        )
    return numbers.to_numpy(dtype=np.float64)


def _read_scores(scores: ScoresLike, positive: Any) -> pd.DataFrame:
    """Return scores in long form: task, judge, score and whatever of the design the table has."""
    if isinstance(scores, pd.DataFrame) and _find_column(scores, "task") is None:
        scores = _melt_scores(scores)
    table = scores.copy() if isinstance(scores, pd.DataFrame) else as_table(scores).to_pandas()
    columns = _read_ids(table, ("task", "judge"), ("system", "cluster", "stratum"), "scores")
    value = next((name for name in ALIASES["score"] if name in table.columns and name not in columns.values()), None)
    if value is None:
        raise InputError(f"scores need a column score; the columns are {preview(table.columns, 12)}")
    table = table[table[value].notna()]
    if table.empty:
        raise InputError("there are no scores of judges; expected at least one row with task, judge and score")
    rows = pd.DataFrame({role: _as_text_ids(table[name], role) for role, name in columns.items()})
    rows["score"] = _read_numbers(table[value], positive, "score")
    if "inclusion" in table.columns:
        rows["inclusion"] = table["inclusion"].to_numpy()
    return rows


def _melt_scores(wide: pd.DataFrame) -> pd.DataFrame:
    """Return a wide table, with a column for each judge, in long form."""
    names = [str(name) for name in wide.index.names]
    if wide.index.nlevels == 2 and set(names) != {"system", "task"}:
        raise InputError(f"the index of a wide table is task, or system and task; got {preview(names)}")
    wide = wide.rename_axis(names if wide.index.nlevels == 2 else "task")
    if wide.select_dtypes(exclude=[np.number, "bool"]).shape[1]:
        raise InputError(
            "scores need the columns task, judge and score, or one column of numbers for each judge; got "
            f"{preview(wide.columns, 12)}"
        )
    return wide.melt(ignore_index=False, var_name="judge", value_name="score").reset_index()


def _read_labels(labels: LabelsLike, positive: Any) -> pd.DataFrame:
    """Return labels with the columns task, label and, where given, rater, system and the design."""
    if isinstance(labels, pd.Series):
        labels = labels.rename("label").rename_axis("task").reset_index()
    elif isinstance(labels, Mapping) and "task" not in labels:
        labels = pd.DataFrame({"task": list(labels), "label": list(labels.values())})
    table = labels if isinstance(labels, pd.DataFrame) else as_table(labels).to_pandas()
    columns = _read_ids(table, ("task",), ("rater", "system", "cluster", "stratum"), "labels")
    value = next((name for name in ALIASES["label"] if name in table.columns and name not in columns.values()), None)
    if value is None:
        raise InputError(f"labels need a column label; the columns are {preview(table.columns, 12)}")
    is_filled = table[value].notna() & (table[value].astype(str).str.strip() != "")
    table = table[is_filled]
    if table.empty:
        raise InputError("there are no labels of people; label some items first, at random or by a plan")
    rows = pd.DataFrame({role: _as_text_ids(table[name], role) for role, name in columns.items()})
    rows["label"] = _read_numbers(table[value], positive, "label")
    if "inclusion" in table.columns:
        rows["inclusion"] = table["inclusion"].to_numpy()
    return rows.reset_index(drop=True)


def _spread_over_systems(labels: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Add the system to labels by task id, if every labelled task belongs to one system."""
    pairs = scores[["system", "task"]].drop_duplicates()
    if pairs["system"].nunique() > 1 and pairs["task"].isin(labels["task"]).any():
        shared = pairs[pairs["task"].isin(labels["task"])]
        if shared["task"].duplicated().any():
            raise InputError(
                "labels do not name the system, and several systems have outputs for one task; add the column system to the labels"
            )
    of_task = pairs.drop_duplicates("task").set_index("task")["system"]
    return labels.assign(system=labels["task"].map(of_task).fillna(str(pairs["system"].iloc[0])))


def _spread_scores(rows: pd.DataFrame, keys: pd.MultiIndex) -> tuple[Array, pd.Index]:
    """Return mean scores by item and judge."""
    judge, judges = pd.factorize(rows["judge"], sort=True)
    if len(judges) > MAX_JUDGES:
        warnings.warn(
            f"{len(judges):,} judges are too many for weights of their own; the mean score of each item is used instead",
            DataWarning,
            stacklevel=4,
        )
        judge, judges = np.zeros(len(rows), dtype=np.int64), pd.Index(["mean"])
    item = keys.get_indexer(pd.MultiIndex.from_frame(rows[["system", "task"]]))
    cell = item * len(judges) + judge
    matrix = _mean_by(cell, rows["score"].to_numpy(dtype=np.float64), len(keys) * len(judges))
    return matrix.reshape(len(keys), len(judges)), pd.Index(judges, name="judge")


def _mean_by(code: NDArray[Any], values: Array, n: int) -> Array:
    """Return the mean of the values of each code; nan for codes without values."""
    count = np.bincount(code, minlength=n)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.bincount(code, weights=values, minlength=n) / np.where(count, count, np.nan))


def _read_design(keys: pd.MultiIndex, items: DataFrameLike | None, *others: pd.DataFrame) -> dict[str, Any]:
    """Return cluster, stratum and inclusion of the items from the first table that has them."""
    tables = [*others]
    if items is not None:
        table = items if isinstance(items, pd.DataFrame) else as_table(items).to_pandas()
        if _find_column(table, "task") is None and table.index.name is not None:
            table = table.reset_index()
        columns = _read_ids(table, ("task",), ("system", "cluster", "stratum"), "items")
        rows = pd.DataFrame({role: _as_text_ids(table[name], role) for role, name in columns.items()})
        if "inclusion" in table.columns:
            rows["inclusion"] = table["inclusion"].to_numpy()
        tables.insert(0, rows)
    design: dict[str, Any] = {}
    for role in ("cluster", "stratum", "inclusion"):
        table = next((table for table in tables if role in table), None)
        if table is None:
            continue
        by = ["system", "task"] if "system" in table else ["task"]
        values = table[[*by, role]].drop_duplicates()
        if values.duplicated(by).any():
            raise InputError(
                f"an item has more than one {role}, such as {preview(values[values.duplicated(by)]['task'])}"
            )
        index = values.set_index(by)[role]
        aligned = index.reindex(keys if len(by) == 2 else keys.get_level_values("task"))
        if role == "inclusion":
            design[role] = pd.to_numeric(aligned, errors="coerce").to_numpy(dtype=np.float64)
        elif aligned.isna().any():
            raise InputError(
                f"{count_noun(int(aligned.isna().sum()), 'item')} without a {role}; give one to every item"
            )
        else:
            design[role] = aligned.to_numpy()
    return design
