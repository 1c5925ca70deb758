"""What a range of described records holds, and the marks of its partitions (architecture section 6, step 1)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from replicator.stages import tuning
from replicator.stages.tick import likeness
from replicator.stages.tick.rewind import Watch
from replicator.transforms import changes, reach, runs


def surveyed(watch: Watch, records: DataFrame) -> tuple[list[Row], list[Row]]:
    """The groups of the range (``changes.survey``) and the marks of its partitions (``reach.reached``), each ``keyed``:
    whether each key of its topic is known to be in one partition.
    """
    survey, places = changes.survey(records), reach.placed(records)
    known = watch.at.reached.marks(watch.news.continued)
    if tuning.is_small(records.sparkSession):
        groups, found = _in_one_job(survey, reach.reached(places, known))
        topics = set[str]()
    else:
        groups, seen = _in_one_job(survey, runs.of(places))
        found, topics = by_runs(places, known, seen), runs.keyed(seen)
    marks = [Row(**mark.asDict(), keyed=mark["topic"] in topics) for mark in found]
    return likeness.exampled(watch.at, groups), marks


def by_runs(places: DataFrame, known: Column, seen: Sequence[Row]) -> list[Row]:
    """As ``reach.reached``: of the ends of the runs that were ``seen``, and of all records of topics where these leave
    a doubt.
    """
    told = runs.ends(seen)
    if told is None:
        return reach.reached(places, known).collect()
    ends, doubted = told
    marks = reach.reached_at_ends(runs.at(places, ends), known).collect() if ends else []
    doubted = doubted.union(_in_doubt(places, known, ends, marks))
    if not doubted:
        return marks
    others = reach.reached(places.where(F.col("topic").isin(*sorted(doubted))), known).collect()
    return [*(mark for mark in marks if mark["topic"] not in doubted), *others]


def _in_doubt(places: DataFrame, known: Column, ends: runs.Ends, marks: Sequence[Row]) -> set[str]:
    """The topics of whose order the ends of runs do not tell, nor what stands below them."""
    doubted = runs.in_doubt(marks)
    below = runs.stretches(mark for mark in marks if mark["topic"] not in doubted)
    if not below:
        return doubted
    again = reach.reached_at_ends(runs.near(places, ends, below), known).collect()
    return doubted | runs.in_doubt(again)


def _in_one_job(survey: DataFrame, others: DataFrame) -> tuple[list[Row], list[Row]]:
    groups, found = survey.select(F.struct("*").alias("group")), others.select(F.struct("*").alias("other"))
    rows = groups.unionByName(found, allowMissingColumns=True).collect()
    return [row["group"] for row in rows if row["group"]], [row["other"] for row in rows if row["other"]]
