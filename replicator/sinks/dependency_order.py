"""The order in which models may be written."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from replicator.errors import ConfigError
from replicator.protocols import Difference


def referenced_first(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    """Return the differences such that a model comes after every model that it references; otherwise by name.

    References to models that are not among them are ignored. Raises ConfigError for a cycle of references and for a
    model that occurs twice.
    """
    by_name: dict[str, Difference] = {}
    for difference in sorted(differences, key=lambda each: each.model.name):
        if by_name.setdefault(difference.model.name, difference) is not difference:
            raise ConfigError("a model occurs twice in one batch", where=difference.model.name)
    graph = {name: [r for r in d.model.references if r in by_name] for name, d in by_name.items()}
    try:
        return tuple(by_name[name] for name in TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise ConfigError(f"models reference each other in a cycle: {circle}", fix="Drop one reference.") from None
