"""Why a gold model is computed in full, or need not be. Each reason has a stable name and a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from replicator import names
from replicator.debezium.widening import widen
from replicator.errors import ConfigError
from replicator.jvm import causes
from replicator.spec import FULL, Model
from replicator.stages.models.model_inputs import ModelInput, View
from replicator.transforms.columns.layout import normalize_type
from replicator.transforms.incremental import eligibility
from replicator.transforms.incremental.eligibility import JoinAnalysis


@dataclass(frozen=True)
class Reason:
    """The reason for how a model is computed."""

    name: str
    sentence: str


UNMOVED = Reason("unmoved", "its inputs are unchanged")
NO_TABLE = Reason("no table", "its table does not exist yet")
CHECKS_CHANGED = Reason("checks changed", "only its checks changed")

_PARTS = {
    "sql": "its SQL changed",
    "settings": "the Spark settings that affect its SQL changed",
    "key": "its key changed",
    "lineage": "its lineage changed",
    "unknown_member": "its unknown member changed",
}


@dataclass(frozen=True)
class RefreshFacts:
    """What the reasons are derived from: a model's inputs and their views by placeholder, the control rows of its
    newest refresh and of this one, its rows as they are to be and as stored, and a function that returns the analysis
    of its SQL's plan. ``is_small``: finding out what changed costs more than computing everything.
    """

    inputs: Mapping[str, ModelInput]
    views: Mapping[str, View]
    last: Mapping[str, Any] | None
    control: Mapping[str, Any]
    full_rows: DataFrame
    stored: DataFrame
    probe: Callable[[], JoinAnalysis]
    is_small: bool


def reason_for_full(model: Model, found: RefreshFacts) -> Reason | None:
    """Return why changed keys cannot tell which rows to compute, or need not; None if they can."""
    return next(_find_reasons(model, found), None)


def sql_obstacle(
    model: Model, full_rows: DataFrame, keys: Mapping[str, Sequence[str]], probe: Callable[[], JoinAnalysis]
) -> Reason | None:
    """Return why the SQL, with these rows and this plan, cannot be computed by changed keys; None if it can. ``keys``
    are those of its inputs.
    """
    obstacle = eligibility.obstacle(full_rows)
    if obstacle is not None:
        return Reason("not by rows", f"its SQL is not a tree of inner and left joins: {obstacle}")
    twice = probe().inputs_read_twice()
    if twice:
        return Reason("read twice", f"its SQL reads {{{twice[0]}}} more than once: each use needs a name and a lineage")
    if probe().loses_lineage(model.lineage_columns, model.key):
        return Reason(
            "loose lineage",
            "its filters, joins or key depend on a left join whose lineage is not that of the referencing side",
        )
    return _untraced(model, keys, probe())


def _untraced(model: Model, keys: Mapping[str, Sequence[str]], probe: JoinAnalysis) -> Reason | None:
    """Return a reason if the key of an input is not in the lineage wherever its rows are used: changes of an input are
    found by its key there.
    """
    untraced = probe.untraced(model.lineage, keys)
    if untraced is None:
        return None
    name, column = untraced
    key = ", ".join(keys[name])
    return Reason("untraced lineage", f"its SQL does not show that {column} is the key ({key}) of {{{name}}}")


def parents_moved(parents: Iterable[str]) -> Reason:
    """Return the reason for a refresh that computes nothing: stored rows are checked against what changed in other
    models.
    """
    return Reason("parents moved", f"only models that its checks reference changed: {', '.join(sorted(parents))}")


def no_history(given: str, after: int) -> Reason:
    """Return the reason that an input no longer has its change history."""
    return Reason("no history", f"{given} no longer has the changes since its version {after}")


def many(count: int | None, rows: int | None, what: str) -> Reason:
    """Return the reason that too many rows are affected."""
    return Reason("many rows", f"{count or 0:,} {what} for {rows or 0:,} rows")


def parts_failed(error: Exception) -> Reason:
    """Return the reason that affected rows cannot be computed separately: without a match in a part of an input, an
    expression gets values that it never gets over all rows.
    """
    return Reason("parts failed", f"its affected rows cannot be computed separately: {causes.summarize(error)}")


def moved(model: Model, changed: Mapping[str, int]) -> Reason:
    """Return the reason of an ordinary refresh: the numbers of changed keys of each input."""
    counts = {model.inputs[name]: count for name, count in changed.items() if count}
    texts = ", ".join(f"{count:,} of {given}" for given, count in counts.items())
    return Reason("changed keys", f"changed keys: {texts}" if counts else "no key of its inputs changed")


def _find_reasons(model: Model, found: RefreshFacts) -> Iterator[Reason]:
    if found.last is None:
        yield Reason("unknown", "the inputs of its last refresh are not recorded")
        return
    for part, sentence in _PARTS.items():
        if found.last.get(part) != found.control[part]:
            yield Reason(f"{part} changed", sentence)
    if model.refresh == FULL:
        unnamed = [name for name in model.inputs if name not in model.lineage]
        yield Reason("declared", f"its lineage lacks {', '.join(unnamed)}" if unnamed else "`refresh: full`")
    if found.is_small:
        yield Reason("small", "its inputs are small")
    yield from _of_inputs(found)
    if dict(found.full_rows.dtypes) != dict(found.stored.dtypes):
        yield Reason("columns changed", "its columns changed")
    misfit = lineage_misfit(model, found.views, found.full_rows)
    if misfit is not None:
        yield misfit
    reason = sql_obstacle(model, found.full_rows, {name: view.keys for name, view in found.views.items()}, found.probe)
    if reason is not None:
        yield reason


def _of_inputs(found: RefreshFacts) -> Iterator[Reason]:
    last: Mapping[str, Any] = found.last or {}
    for name, each in found.inputs.items():
        identity, version, _ = last["inputs"].get(name, (None, 0, None))
        if identity != each.identity or version > each.version:
            yield Reason("input replaced", f"{each.given} was replaced by another table")
        if last.get("columns", {}).get(name) != found.views[name].columns:
            yield Reason("input columns", f"the columns of {each.given} changed")
        if not found.views[name].keys:
            yield Reason("no key", f"{each.given} has no key")


def lineage_misfit(model: Model, views: Mapping[str, View], full_rows: DataFrame) -> Reason | None:
    """Return why the lineage cannot hold the key of an input: it needs a column of the same or a wider type for each
    key column. None if it can. Not checked for a model that is always computed in full.
    """
    lineage = model.lineage if model.refresh != FULL else {}
    given = dict(full_rows.dtypes)
    for name, columns in lineage.items():
        view = views[name]
        why = _misfit(given, columns, dict(view.rows.select(*map(names.quote_spark, view.keys)).dtypes))
        if why:
            return Reason("lineage types", f"the lineage of {name} does not match its key: {why}")
    return None


def _misfit(given: Mapping[str, str], columns: Sequence[str], key: Mapping[str, str]) -> str:
    if key and len(columns) != len(key):
        return f"each key column ({', '.join(key)}) needs one column"
    for column, (name, kind) in zip(columns, key.items(), strict=False):
        wide = widen(given[column], kind)
        if wide is None or normalize_type(wide) != normalize_type(given[column]):
            return f"{column} is {given[column]}, but {name} is {kind}"
    return ""


def refuse_new_lineage(model: Model, last: Mapping[str, Any] | None, control: Mapping[str, Any], why: Reason) -> None:
    """Raise ConfigError if the model's SQL or declared lineage changed since the last refresh, or if there was none. A
    lineage that was valid until an input changed is no mistake of the model: it is computed in full.
    """
    if last is None or any(last.get(part) != control[part] for part in ("sql", "lineage")):
        fix = f"Fix `lineage` of model {model.name}, or set `refresh: full`."
        raise ConfigError(why.sentence, where=model.name, fix=fix)
