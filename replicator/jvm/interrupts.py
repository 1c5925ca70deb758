"""Ctrl-C and SIGTERM in a program that has started a JVM."""

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
    """Defer Ctrl-C to the end of the block: a JVM whose start is interrupted would keep running by itself. Ctrl-C takes
    precedence over an error of the block: a signal to all processes has ended that JVM.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    except Exception:
        if not received:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
    if received:
        raise KeyboardInterrupt


def ignore_sigterm(jvm: Any) -> None:
    """Let this JVM ignore SIGTERM, as pyspark lets it ignore Ctrl-C: service managers send it to all processes of a
    service, and the current pass is to be completed. The JVM ends with the program, whose end of a pipe it watches.
    """
    signals = jvm.sun.misc
    signals.Signal.handle(signals.Signal("TERM"), signals.SignalHandler.SIG_IGN)


def cancel_on_interrupt(cancel: Callable[[], None]) -> None:
    """From now on, let Ctrl-C cancel the JVM's jobs, in another thread: the interrupted one may be in the middle of a
    response from the JVM, where pyspark's own handler would send another request and fail.
    """

    def interrupted(*_: object) -> NoReturn:
        threading.Thread(target=cancel, daemon=True).start()
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        logging.getLogger().addFilter(_is_not_of_py4j)
        logging.getLogger("py4j").propagate = False  # what a batch of a stream met is raised as well
        signal.signal(signal.SIGINT, interrupted)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """py4j logs the traceback of a response that Ctrl-C interrupted, although the error is also raised."""
    return record.module not in ("java_gateway", "clientserver")


class Termination:
    """Handles SIGTERM as Ctrl-C would be handled at that moment; ``came`` says whether it was received."""

    def __init__(self) -> None:
        self.came = False
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._interrupt)

    def _interrupt(self, _: int, frame: FrameType | None) -> None:
        self.came = True
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)
        else:  # shells let background processes ignore Ctrl-C
            raise KeyboardInterrupt


def is_caused_by_interrupt(error: BaseException) -> bool:
    """Whether an error was raised while Ctrl-C was being handled."""
    context: BaseException | None = error
    while context is not None and not isinstance(context, KeyboardInterrupt):
        context = context.__context__
    return context is not None
