"""Ctrl-C and SIGTERM in a program that has a JVM of its own."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn


@contextmanager
def defer() -> Iterator[None]:
    """Ctrl-C counts at the end of the block: a JVM whose start is cut off half-way would live on by itself. It counts
    more than an error of the block: a signal to all processes ended that JVM.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    except Exception:
        if not came:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def ignore_sigterm(jvm: Any) -> None:
    """SIGTERM does nothing to this JVM, as pyspark has Ctrl-C do nothing: service managers send it to all processes of
    a service, and the pass at hand is to be finished. It ends with the program, whose end of a pipe it watches.
    """
    signals = jvm.sun.misc
    signals.Signal.handle(signals.Signal("TERM"), signals.SignalHandler.SIG_IGN)


def cancel_on_interrupt(cancel: Callable[[], None]) -> None:
    """From now on Ctrl-C has the work of the JVM cancelled, by another thread: the one that it finds may be in the
    midst of an answer from there, where pyspark's own way asks once more and falls over itself.
    """

    def interrupted(*_: object) -> NoReturn:
        threading.Thread(target=cancel, daemon=True).start()
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        logging.getLogger().addFilter(_is_not_of_py4j)
        signal.signal(signal.SIGINT, interrupted)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """py4j writes the trace of an answer that Ctrl-C cut off; what it has to say is raised as well."""
    return record.module not in ("java_gateway", "clientserver")


class Termination:
    """SIGTERM, which does what Ctrl-C would do at that moment; ``came`` says whether it did."""

    def __init__(self) -> None:
        self.came = False
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._interrupt)

    def _interrupt(self, _: int, frame: FrameType | None) -> None:
        self.came = True
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)
        else:  # shells have what they start in the background ignore Ctrl-C
            raise KeyboardInterrupt


def is_caused_by_interrupt(error: BaseException) -> bool:
    """Whether an error came up while Ctrl-C was being heeded."""
    context: BaseException | None = error
    while context is not None and not isinstance(context, KeyboardInterrupt):
        context = context.__context__
    return context is not None
