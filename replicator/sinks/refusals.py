"""The models of one batch that a target refused, and those that wait for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from replicator import damage, s3
from replicator.errors import TargetRefused, Unreachable
from replicator.jvm import causes
from replicator.protocols import Difference
from replicator.spec import Applied, blocked_models


@contextmanager
def translate_compute_errors(model: str) -> Iterator[None]:
    """Translate what Spark raises while it computes a model's rows: to a TargetRefused of that model, so that the
    others go on; to Unreachable if the lake does not answer, and StoreRefused if its store refuses.
    """
    from replicator.jvm.failures import ALL_FAILURES  # noqa: PLC0415 - reading the ledger needs no pyspark

    try:
        yield
    except ALL_FAILURES as error:
        what = f"the rows of model {model} were not sent to the target: {causes.summarize(error)}."
        if causes.is_unreachable(error):
            raise Unreachable(what, where=model, fix="Run again once it has recovered.") from error
        if causes.is_access_denied(error):
            raise s3.access_error(causes.summarize(error), model) from error
        usual = "Correct the model; if memory is short, give Spark more (`spark.driver.memory`)."
        raise TargetRefused(what, where=model, fix=damage.repair_hint(str(error)) or usual) from error


class Refusals:
    """Collects one error per model, so that the others can go on (architecture section 2, idea 5)."""

    def __init__(self, ordered: Sequence[Difference]) -> None:
        self._ordered = ordered
        self._errors: dict[str, TargetRefused] = {}

    def note(self, error: TargetRefused) -> None:
        """Remove the model that the error's ``where`` names from the batch; all models if it names none of them."""
        names = [each.model.name for each in self._ordered]
        for name in [error.where] if error.where in names else names:
            self._errors.setdefault(str(name), error)

    @contextmanager
    def record(self) -> Iterator[None]:
        """Note a TargetRefused raised in the block instead of passing it on."""
        try:
            yield
        except TargetRefused as error:
            self.note(error)

    def blocks(self, model: str) -> bool:
        """Whether a model is refused, or references a refused one."""
        return model in self._errors or model in self._waits()

    def raise_or_return(self, applied: Mapping[str, Applied]) -> dict[str, Applied]:
        """Return what was applied; if anything was refused, raise one TargetRefused for the whole batch."""
        if not self._errors:
            return dict(applied)
        refused = dict(self._errors)
        refused |= {model: TargetRefused.waits(model, cause) for model, cause in self._waits().items()}
        distinct = list(dict.fromkeys(refused.values()))
        committed = {model: each for model, each in applied.items() if model not in refused}
        raise TargetRefused(
            " ".join(each.what for each in distinct),
            where=", ".join(refused),
            fix=distinct[0].fix,
            refused=refused,
            applied=committed,
        )

    def _waits(self) -> dict[str, str]:
        return blocked_models([each.model for each in self._ordered], self._errors)
