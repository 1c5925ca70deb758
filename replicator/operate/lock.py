"""One writer per lake and stage (decision 0026): the leases of some stages, held for the duration of a block.

Effects, in this order: 1. on an object store, a probe that it honours conditional writes; 2. each stage's lease, in
order of name; 3. a token, drawn while all leases are held. A crash at any point leaves leases that expire by
themselves.
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
"""The time in seconds after which a lease that was not renewed may be taken by another process."""

WORDS = "words"
"""The lease for operator commands that write control rows while runs are active."""

_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class LeaseOptions:
    """How leases are held: their ``length`` in seconds (None: no leases), the ``wait`` in seconds for a lease that a
    live process holds, and the settings of the object store.
    """

    length: float | None = LEASE_SECONDS
    wait: float = 0.0
    s3: S3Keys | None = None


@dataclass(frozen=True)
class HeldLeases:
    """The ``Fence`` of a process that holds some leases."""

    leases: Sequence[Lease]
    token: Token

    def check(self) -> None:
        """Raise LeaseLost unless every lease is held."""
        for lease in self.leases:
            lease.check()

    def refuse_if_lost(self) -> None:
        """Raise LeaseLost if a lease is known to be lost: another driver has taken it, or somebody has broken it."""
        for lease in self.leases:
            if lease.is_lost:
                lease.check()


@contextmanager
def exclusive(lake: Lake, stages: Collection[str], terms: LeaseOptions | None = None) -> Iterator[Fence]:
    """Hold the leases of some stages for the duration of the block; with no stages, none. The fence is for everything
    that writes.

    Raises LakeBusy when another process holds one, ConfigError where leases are not supported, Unreachable; and at the
    end of the block LeaseLost where one was lost meanwhile.
    """
    terms = terms or LeaseOptions()
    if not stages or terms.length is None:
        yield UNFENCED
        return
    register_at, holder, leases = _register_factory(lake, terms, probed=True), this_process(), list[Lease]()
    registers = {stage: register_at(lake.lease(stage)) for stage in sorted(stages)}
    # a driver that died stopped renewing all of its leases: watched one after the other, each would cost a full wait
    watched = {stage: watch(register) for stage, register in registers.items()}
    with ExitStack() as releases:
        for stage, register in registers.items():
            lease = acquire(register, stage, holder, terms.length, wait=terms.wait, watched=watched[stage])
            releases.callback(lease.release)
            leases.append(lease)
        held_leases = HeldLeases(leases, token.draw(register_at(lake.token())))
        failpoints.hit("lease.token_drawn")
        for lease in leases:
            lease.mark(held_leases.token.number)
        yield held_leases
        held_leases.refuse_if_lost()  # a run that lost its lease must fail even if it did not write since


@contextmanager
def operator_lock(lake: Lake, terms: LeaseOptions) -> Iterator[Fence]:
    """Hold the lease of operator commands, such as that which pauses a table: two of them that read a control row
    before either wrote it would lose one of the changes. Raises as :func:`exclusive`; LakeBusy after a minute.
    """
    with exclusive(lake, (WORDS,), replace(terms, wait=_WAIT_SECONDS)) as fence:
        yield fence


def read_leases(lake: Lake, stages: Collection[str], terms: LeaseOptions) -> list[LeaseRecord]:
    """Return the lease records of these stages, of those that were ever taken."""
    register_at = _register_factory(lake, terms)
    found = [(register, register.read()) for register in (register_at(lake.lease(stage)) for stage in stages)]
    return [lease_record.parse(stored.text, register.where) for register, stored in found if stored is not None]


def break_lease(lake: Lake, stage: str, terms: LeaseOptions) -> LeaseRecord | None:
    """Take a stage's lease from its holder, who may not write from then on; return the holder's record, None if nobody
    held it.
    """
    register = _register_factory(lake, terms)(lake.lease(stage))
    while True:
        stored = register.read()
        found = None if stored is None else lease_record.parse(stored.text, register.where)
        if stored is None or found is None or found.free:
            return None
        if register.replace(found.next(free=True).text(), stored.tag) is not None:
            return found


def _register_factory(lake: Lake, terms: LeaseOptions, *, probed: bool = False) -> Callable[[str], Register]:
    """Return a function from a path of the lake to the register there. Raises ConfigError for a lake that does not
    support leases.
    """
    if lake.is_local():
        return lambda path: FileRegister(local_path(path))
    if not lake.root.startswith("s3a://"):
        raise ConfigError(
            "leases need a local disk or s3a://",
            where=lake.root,
            fix="Set lake.lease: off in a configuration (--env NAME, not --lake), and start one driver per lake.",
        )
    client = s3.client(terms.s3)
    if probed:
        refuse_unconditional(client, lake.leases_root())
    return lambda path: S3Register(client, path)
