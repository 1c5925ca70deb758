"""One writer per lake and stage (decision 0026): the leases of some stages, held for the time of a block.

Effects, in this order: 1. on an object store, a probe that it honours conditions; 2. each stage's lease, in order of
name; 3. a token, drawn while all are held. A crash anywhere leaves leases that end by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from replicator import failpoints, s3
from replicator.errors import ConfigError
from replicator.lake import Lake, local_path
from replicator.leases import lease_record, token
from replicator.leases.file_register import FileRegister
from replicator.leases.holder import this_process
from replicator.leases.lease import Lease, acquire, watch
from replicator.leases.lease_record import LeaseRecord
from replicator.leases.register import Register
from replicator.leases.s3_register import S3Register, refuse_unconditional
from replicator.protocols import UNFENCED, Fence
from replicator.spec import Token

if TYPE_CHECKING:
    from replicator.config.settingkeys import S3Keys

LEASE_SECONDS = 30.0
"""Seconds after which a lease that nobody renews is anybody's."""

WORDS = "words"
"""The lease of what operators say beside a run."""

_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class LeaseOptions:
    """How leases are kept: their ``length`` in seconds (None: not at all), for how long a living holder is waited for,
    and how the object store is reached.
    """

    length: float | None = LEASE_SECONDS
    wait: float = 0.0
    s3: S3Keys | None = None


@dataclass(frozen=True)
class HeldLeases:
    """``Fence`` of a process that holds some leases."""

    leases: Sequence[Lease]
    token: Token

    def check(self) -> None:
        """Every lease is held."""
        for lease in self.leases:
            lease.check()

    def refuse_if_lost(self) -> None:
        """Another driver has taken one, or somebody has shut this one out."""
        for lease in self.leases:
            if lease.is_lost:
                lease.check()


@contextmanager
def exclusive(lake: Lake, stages: Collection[str], terms: LeaseOptions | None = None) -> Iterator[Fence]:
    """Hold the leases of some stages; none need none. The fence is for all that writes.

    Raises LakeBusy when another process holds one, ConfigError where none can be kept, Unreachable; and at its end
    LeaseLost where one was lost meanwhile.
    """
    terms = terms or LeaseOptions()
    if not stages or terms.length is None:
        yield UNFENCED
        return
    at, holder, leases = _register_factory(lake, terms, probed=True), this_process(), list[Lease]()
    registers = {stage: at(lake.lease(stage)) for stage in sorted(stages)}
    # a driver that fell silent did so in all of its stages: in turn, each would be waited for as long
    watched = {stage: watch(register) for stage, register in registers.items()}
    with ExitStack() as kept:
        for stage, register in registers.items():
            lease = acquire(register, stage, holder, terms.length, wait=terms.wait, watched=watched[stage])
            kept.callback(lease.release)
            leases.append(lease)
        held = HeldLeases(leases, token.draw(at(lake.token())))
        failpoints.hit("lease.token_drawn")
        for lease in leases:
            lease.mark(held.token.number)
        yield held
        held.refuse_if_lost()  # a run that went on without writing says so


@contextmanager
def operator_lock(lake: Lake, terms: LeaseOptions) -> Iterator[Fence]:
    """Hold the lease of what operators say beside a run, such as that a table is paused: of two who had read a row
    before either wrote it, the words of one would be lost. Raises as :func:`exclusive`, LakeBusy after a minute.
    """
    with exclusive(lake, (WORDS,), replace(terms, wait=_WAIT_SECONDS)) as fence:
        yield fence


def read_leases(lake: Lake, stages: Collection[str], terms: LeaseOptions) -> list[LeaseRecord]:
    """What the leases of these stages say, of those that were ever taken."""
    at = _register_factory(lake, terms)
    found = [(register, register.read()) for register in (at(lake.lease(stage)) for stage in stages)]
    return [lease_record.parse(stored.text, register.where) for register, stored in found if stored is not None]


def break_lease(lake: Lake, stage: str, terms: LeaseOptions) -> LeaseRecord | None:
    """Take a stage's lease from its holder, who may not write any more from then on; who that was, None if nobody."""
    register = _register_factory(lake, terms)(lake.lease(stage))
    while True:
        stored = register.read()
        found = None if stored is None else lease_record.parse(stored.text, register.where)
        if stored is None or found is None or found.free:
            return None
        if register.replace(found.next(free=True).text(), stored.tag) is not None:
            return found


def _register_factory(lake: Lake, terms: LeaseOptions, *, probed: bool = False) -> Callable[[str], Register]:
    """From a path of the lake to the register there. Raises ConfigError for a lake where none can be kept."""
    if lake.is_local():
        return lambda path: FileRegister(local_path(path))
    if not lake.root.startswith("s3a://"):
        raise ConfigError(
            "leases are kept on a local disk or s3a://, not here",
            where=lake.root,
            mend="Set lake.lease: off in a configuration (--env NAME, not --lake), and start one driver per lake.",
        )
    client = s3.client(terms.s3)
    if probed:
        refuse_unconditional(client, lake.leases_root())
    return lambda path: S3Register(client, path)
