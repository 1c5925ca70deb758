"""Comparison of tables that must be equal: their contents, not only counts, each side as of one moment (reliability.md
P9).
"""

from replicator.operate.verify.runner import sizes, verify
from replicator.operate.verify.selection import VerifyInputs, resolve_name, select_comparisons
from replicator.operate.verify.verdict import LAYERS, SOURCE, Comparison, Verdict, VerifyOptions

__all__ = [
    "LAYERS",
    "SOURCE",
    "Comparison",
    "Verdict",
    "VerifyInputs",
    "VerifyOptions",
    "resolve_name",
    "select_comparisons",
    "sizes",
    "verify",
]
