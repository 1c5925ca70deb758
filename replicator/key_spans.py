"""Where the keys of a batch lie (``transforms/spans.py``), asked of Spark in two queries over the keys alone."""

from __future__ import annotations

from collections.abc import Sequence

from replicator.transforms import spans
from replicator.transforms.spans import Keys, Spans

_READ_WHOLE_BYTES = 8 << 20
"""Up to here tables are read sooner than it is told where in them something is (decision 0054)."""


def find_if_large(keys: Keys, size: int) -> Sequence[Spans]:
    """The same where it is looked for in tables of so many bytes; not told of those that are read whole sooner."""
    return find(keys) if size > _READ_WHOLE_BYTES else [{} for _ in keys]


def find(keys: Keys) -> Sequence[Spans]:
    """The spans of some columns of each frame. Every frame is read twice, once for the ends of its values and once for
    what lies between.
    """
    values = spans.values(keys)
    ends = [] if values is None else spans.bounds(values).collect()
    return spans.to_spans(keys, spans.parts(values, ends).collect() if values is not None and ends else [])
