"""The spans of a batch's keys (``transforms/spans.py``), computed by Spark in two queries over the keys alone."""

from __future__ import annotations

from collections.abc import Sequence

from replicator.transforms import spans
from replicator.transforms.spans import Keys, Spans

_READ_WHOLE_BYTES = 8 << 20
"""Tables of up to this many bytes are read faster than spans of keys are found in them (decision 0054)."""


def find_if_large(keys: Keys, size: int) -> Sequence[Spans]:
    """As :func:`find` for tables of ``size`` bytes; no spans if reading all of such tables is faster."""
    return find(keys) if size > _READ_WHOLE_BYTES else [{} for _ in keys]


def find(keys: Keys) -> Sequence[Spans]:
    """The spans of some columns of each frame. Every frame is read twice: for the bounds of its values, and for the
    gaps between them.
    """
    values = spans.values(keys)
    ends = [] if values is None else spans.bounds(values).collect()
    return spans.to_spans(keys, spans.parts(values, ends).collect() if values is not None and ends else [])
