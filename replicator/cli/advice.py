"""Commands in messages, completed by the options that say which lake is meant: what is copied reaches the same one."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_PLACE = ("--env", "--conf", "--lake", "--declare")
_COMMAND = re.compile(r"`replicator ([^`]+)`")


def place_of(arguments: Sequence[str]) -> dict[str, str]:
    """Return the options among the arguments of a command that say which lake it works on, and how its tables are
    declared. A lake that is given is used without a configuration.
    """
    found: dict[str, str] = {}
    for argument, following in zip(arguments, [*arguments, ""][1:], strict=True):
        option, is_joined, value = argument.partition("=")
        if option in _PLACE:
            found[option] = value if is_joined else following
    if "--lake" in found:
        return {option: value for option, value in found.items() if option not in ("--env", "--conf")}
    return found


def command(*words: str) -> str:
    """Return a command in backquotes, as messages print it, quoted for a shell."""
    return f"`replicator {shlex.join(words)}`"


def complete(text: str, place: Mapping[str, str]) -> str:
    """Return the text; each command in backquotes in it that says of no lake has those of the options of ``place``
    that it accepts.
    """
    return _COMMAND.sub(lambda found: _completed(found[1], place), text) if place else text


def _completed(command: str, place: Mapping[str, str]) -> str:
    words = command.split()
    if any(word.partition("=")[0] in _PLACE for word in words):
        return f"`replicator {command}`"
    accepted = _accepted_options(words)
    options = [part for option in place if option in accepted for part in (option, place[option])]
    return f"`{' '.join(filter(None, ('replicator', command, shlex.join(options))))}`"


def _accepted_options(words: Sequence[str]) -> Collection[str]:
    """Return the options of the named command; none of one that does not exist, or of a group."""
    from replicator.cli import verbs

    if words[0] not in verbs.VERBS:
        return ()
    found: Any = verbs.load(words[0])
    for word in words[1:]:
        commands = getattr(found, "commands", {})
        found = commands.get(word, found)
    return {option for parameter in found.params for option in parameter.opts}
