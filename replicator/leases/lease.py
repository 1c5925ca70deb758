"""A lease of one stage of a lake: acquired, renewed in the background, checked before each write, released.

Clocks of different machines are not compared. A holder counts from the moment before it sent its last renewal; another
driver that wants a silent holder's lease counts from the moment when it saw that renewal, which is later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from threading import Event, Lock, Thread

from replicator import failpoints
from replicator.errors import LakeBusy, LeaseLost, ReplicatorError
from replicator.leases import lease_record
from replicator.leases.holder import Holder, has_ended
from replicator.leases.lease_record import LeaseRecord
from replicator.leases.register import Register, Stored

LOG = logging.getLogger(__name__)

_RENEWALS = 8
"""Renewals per length of a lease: another driver recognizes an active holder after an eighth of it."""

_MARGIN = 0.8
"""The share of the length for which a holder trusts a renewal: a commit that has started has the rest of
it to finish.
"""

_POLL_SECONDS = 0.5
_FRESH_SECONDS = 1.0


def seconds_since_boot() -> float:
    """Seconds that also pass while this process or machine sleeps, independent of the system's time."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True)
class Clock:
    """A source of time."""

    now: Callable[[], float] = seconds_since_boot
    sleep: Callable[[float], None] = time.sleep


SYSTEM_CLOCK = Clock()


def acquire(
    register: Register,
    stage: str,
    holder: Holder,
    length: float,
    *,
    wait: float = 0.0,
    clock: Clock = SYSTEM_CLOCK,
    watched: Watch | None = None,
) -> Lease:
    """Acquire the lease. Raises LakeBusy as soon as an active holder is recognized, or ``wait`` seconds later.

    A holder is known to be active when its object changes. It loses the lease if it stays silent for the length of its
    own lease, counted from when it was first ``watched``, or if it is a process on this machine that has ended.
    """
    watched = watched or Watch(clock)
    until = clock.now() + wait
    while True:
        stored = register.read()
        found = None if stored is None else lease_record.parse(stored.text, register.where)
        begun = clock.now()
        if found is None or found.free or has_ended(found.holder) or watched.is_silent(stored, found):
            fresh = LeaseRecord(stage, holder, datetime.now(timezone.utc).isoformat(timespec="seconds"), length)
            tag = register.replace(fresh.text(), None if stored is None else stored.tag)
            if tag is not None:
                failpoints.hit("lease.taken")
                return Lease(register, fresh, tag, begun, clock)
            watched.lives = True
        elif watched.lives and clock.now() >= until:
            raise _busy_error(found, register)
        else:
            clock.sleep(min(_POLL_SECONDS, length / 20))


def watch(register: Register) -> Watch:
    """Read a lease that is to be acquired later: its holder's silence counts from now on."""
    watched, stored = Watch(SYSTEM_CLOCK), register.read()
    if stored is not None:
        watched.is_silent(stored, lease_record.parse(stored.text, register.where))
    return watched


class Watch:
    """Observations of a lease that another driver holds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tag = ""
        self._since = 0.0
        self.lives = False

    def is_silent(self, stored: Stored | None, found: LeaseRecord) -> bool:
        """Whether the object has been unchanged for the length of its holder's lease."""
        tag, now = "" if stored is None else stored.tag, self._clock.now()
        if tag != self._tag:
            self.lives = self.lives or bool(self._tag)
            self._tag, self._since = tag, now
            LOG.debug("lease_held stage=%s holder=%s", found.stage, found.holder)
        return now - self._since >= found.length


def _busy_error(found: LeaseRecord, register: Register) -> LakeBusy:
    return LakeBusy(
        f"{found.stage} of this lake is being written by {found.holder}, since {found.since}",
        where=register.where,
        fix=f"Wait for it, or stop it: one driver writes a lake. `replicator lease break {found.stage}` fences it off.",
    )


class Lease:
    """A held lease. It is renewed in the background until it is released."""

    def __init__(
        self, register: Register, record: LeaseRecord, tag: str, begun: float, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._register = register
        self._held = record
        self._tag = tag
        self._renewed = begun
        self._clock = clock
        self._pending: LeaseRecord | None = None
        self._mutex = Lock()
        self._ended = Event()
        self.is_lost = False
        self._thread = Thread(target=self._renew_periodically, name=f"lease {record.stage}", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise LeaseLost unless the lease is held now; this is confirmed with the store if the last renewal is older
        than a second.

        If the store does not answer, the lease is trusted for four fifths of its length.
        """
        with self._mutex:
            stale = self._clock.now() - self._renewed > min(_FRESH_SECONDS, self._held.length / 10)
            if stale and not self.is_lost:
                self._renew()
            if self.is_lost:
                raise self._lost("another driver has taken it")
            if self._clock.now() - self._renewed > self._held.length * _MARGIN:
                raise self._lost("it could not be renewed in time")

    def mark(self, token: int) -> None:
        """Record the token drawn by the holder with the next renewal."""
        with self._mutex:
            self._held = self._held.next(token=token)

    def release(self) -> None:
        """Release the lease if it is still held. If the store does not answer, nothing happens: the lease expires by
        itself.
        """
        self._ended.set()
        self._thread.join()
        with self._mutex:
            if self._pending is not None:
                self._renew()
            if self.is_lost:
                return
            try:
                self._register.replace(self._held.next(free=True).text(), self._tag)
                failpoints.hit("lease.released")
            except ReplicatorError as error:
                LOG.warning("lease_not_released stage=%s reason=%s", self._held.stage, error)

    def _renew_periodically(self) -> None:
        while not self._ended.wait(self._held.length / _RENEWALS):
            with self._mutex:
                if not self.is_lost:
                    self._renew()

    def _renew(self) -> None:
        """Write the next record. If the answer is lost, the same record is sent again, since the store may have it. A
        silent store is logged once.
        """
        begun = self._clock.now()
        wanted = self._pending or self._held.next()
        try:
            tag = self._register.replace(wanted.text(), self._tag)
        except ReplicatorError as error:
            if self._pending is None:
                LOG.warning("lease_not_renewed stage=%s reason=%s", self._held.stage, error)
            self._pending = wanted
            return
        was_silent, self._pending = self._pending is not None, None
        if tag is None:
            self.is_lost = True
            LOG.warning("lease_lost stage=%s", self._held.stage)
        else:
            if was_silent:
                LOG.warning("lease_renewed_again stage=%s", self._held.stage)
            failpoints.hit("lease.renewed")
            self._held, self._tag, self._renewed = wanted, tag, begun

    def _lost(self, why: str) -> LeaseLost:
        return LeaseLost(
            f"the lease of {self._held.stage} is lost: {why}. Nothing was written afterwards",
            where=self._register.where,
            fix="Run again: it completes the remaining work.",
        )
