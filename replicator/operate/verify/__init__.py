"""Whether tables that must be equal are: contents, not counts, as of one moment of each side (reliability.md P9)."""

from replicator.operate.verify.chosen import Checks, chosen, named
from replicator.operate.verify.verdict import LAYERS, SOURCE, Comparison, Look, Verdict
from replicator.operate.verify.verdicts import sizes, verify

__all__ = ["LAYERS", "SOURCE", "Checks", "Comparison", "Look", "Verdict", "chosen", "named", "sizes", "verify"]
