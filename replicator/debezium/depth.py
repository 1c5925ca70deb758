"""Detection of JSON nested deeper than Spark reads (debezium.md R4). Column functions only."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

MAX_DEPTH = 1000
"""Levels that Spark's parser reads; it takes a text with more for malformed JSON."""


def is_too_deep(text: Column) -> Column:
    """Whether brackets are nested more than MAX_DEPTH deep in a text that may not be JSON; NULL if the text is.

    Linear, and without a regular expression that recurses for each part of its match, since such a text may be hostile.
    Escapes are removed first, so that no remaining quote is inside a string.
    """
    bare = F.regexp_replace(F.regexp_replace(text, r"(?s)\\.", ""), '"[^"]*+"', "")
    brackets = F.split(F.regexp_replace(bare, r"[^\[\]{}]++", ""), "")

    def step(so_far: Column, bracket: Column) -> Column:
        opens = F.when(bracket.isin("[", "{"), 1).when(bracket.isin("]", "}"), -1).otherwise(0)
        level = so_far["level"] + opens
        return F.struct(level.alias("level"), F.greatest(so_far["deepest"], level).alias("deepest"))

    start = F.struct(F.lit(0).alias("level"), F.lit(0).alias("deepest"))
    return F.aggregate(brackets, start, step, lambda found: found["deepest"] > MAX_DEPTH)
