"""Whether a text is nested deeper than JSON is read here (debezium.md R4). Column functions only."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

MAX_DEPTH = 1000
"""So many levels Spark's parser reads; a text with more is no JSON to it."""


def is_too_deep(text: Column) -> Column:
    """Whether brackets stand open within more than DEEPEST others, in a text that may be no JSON. NULL where it is.

    Linear, and without an expression that calls itself for each part of what it matches, since who wrote such a text
    may have meant harm. What is escaped goes first: no quote that is left stands within a text.
    """
    bare = F.regexp_replace(F.regexp_replace(text, r"(?s)\\.", ""), '"[^"]*+"', "")
    brackets = F.split(F.regexp_replace(bare, r"[^\[\]{}]++", ""), "")

    def step(so_far: Column, bracket: Column) -> Column:
        opens = F.when(bracket.isin("[", "{"), 1).when(bracket.isin("]", "}"), -1).otherwise(0)
        level = so_far["level"] + opens
        return F.struct(level.alias("level"), F.greatest(so_far["deepest"], level).alias("deepest"))

    start = F.struct(F.lit(0).alias("level"), F.lit(0).alias("deepest"))
    return F.aggregate(brackets, start, step, lambda found: found["deepest"] > MAX_DEPTH)
