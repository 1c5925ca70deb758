"""Survey a range of described records: its groups, and the marks of its partitions (architecture section 6, step 1)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from replicator.stages import tuning
from replicator.stages.tick import template_reading
from replicator.stages.tick.tick_context import TickContext
from replicator.transforms import changes, runs, watermarks


def run_survey(context: TickContext, records: DataFrame) -> tuple[list[Row], list[Row]]:
    """Return the groups of the range (``changes.survey``) and the marks of its partitions (``watermarks.compute``),
    each with ``keyed``: whether each key of its topic is known to be in a single partition.
    """
    survey, places = changes.survey(records), watermarks.order_columns(records)
    known = context.at.state.marks(context.new_records.continued)
    if tuning.is_small(records.sparkSession):
        groups, found = _in_one_job(survey, watermarks.compute(places, known))
        topics = set[str]()
    else:
        groups, seen = _in_one_job(survey, runs.find_runs(places))
        found, topics = by_runs(places, known, seen), runs.keyed_topics(seen)
    marks = [Row(**mark.asDict(), keyed=mark["topic"] in topics) for mark in found]
    return template_reading.with_examples(context.at, groups), marks


def by_runs(places: DataFrame, known: Column, seen: Sequence[Row]) -> list[Row]:
    """Return the same as ``watermarks.compute``, from the ends of the runs in ``seen``; all records are used only for
    topics where these are not conclusive.
    """
    run_ends = runs.ends(seen)
    if run_ends is None:
        return watermarks.compute(places, known).collect()
    ends, doubted = run_ends
    marks = watermarks.compute_at_run_ends(runs.places_at(places, ends), known).collect() if ends else []
    doubted = doubted.union(_in_doubt(places, known, ends, marks))
    if not doubted:
        return marks
    others = watermarks.compute(places.where(F.col("topic").isin(*sorted(doubted))), known).collect()
    return [*(mark for mark in marks if mark["topic"] not in doubted), *others]


def _in_doubt(places: DataFrame, known: Column, ends: runs.Ends, marks: Sequence[Row]) -> set[str]:
    """Return the topics for which the ends of runs are not conclusive, not even with the records around them that lie
    below a mark.
    """
    doubted = runs.doubtful_topics(marks)
    below = runs.stretches(mark for mark in marks if mark["topic"] not in doubted)
    if not below:
        return doubted
    again = watermarks.compute_at_run_ends(runs.places_near(places, ends, below), known).collect()
    return doubted | runs.doubtful_topics(again)


def _in_one_job(survey: DataFrame, others: DataFrame) -> tuple[list[Row], list[Row]]:
    groups, found = survey.select(F.struct("*").alias("group")), others.select(F.struct("*").alias("other"))
    rows = groups.unionByName(found, allowMissingColumns=True).collect()
    return [row["group"] for row in rows if row["group"]], [row["other"] for row in rows if row["other"]]
