"""The command line and the logging that the two JVM servers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator.jvm import jvm_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# Small and quick to start: these servers carry a demo and a test suite, not production. In Turkish Kafka does not know
# its own settings: the small letter of an I is another one there.
QUICK = [
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
    "-Duser.language=en",
]

_LOGGING = {
    "status": "error",
    "appender.out.type": "Console",
    "appender.out.name": "out",
    "appender.out.layout.type": "PatternLayout",
    "appender.out.layout.pattern": "%d{ISO8601} %-5p %m (%c{1})%n",
    "rootLogger.level": "info",
    "rootLogger.appenderRef.out.ref": "out",
    "logger.clients.name": "org.apache.kafka.clients",
    "logger.clients.level": "error",
}


def command(
    java: Path, folder: Path, class_path: Sequence[Path], heap: Sequence[str], main: str, *arguments: str | Path
) -> list[str | Path]:
    """The command that runs *main*; it logs to stdout."""
    logging = folder / "log4j2.properties"
    write_properties(logging, _LOGGING)
    jars = ":".join(str(jar) for jar in class_path)
    options = [*heap, *jvm_options.smallest_collector(), *QUICK]
    return [java, *options, f"-Dlog4j2.configurationFile={logging}", "-cp", jars, main, *arguments]


def write_properties(file: Path, values: Mapping[str, str | int]) -> None:
    """Write a Java properties file, which is Latin-1 whatever the machine's own encoding is."""
    file.write_text("".join(f"{name}={_escaped(str(value))}\n" for name, value in values.items()), encoding="ascii")


def _escaped(text: str) -> str:
    units = memoryview(text.encode("utf-16-le")).cast("H")
    return "".join(chr(unit) if 0x20 <= unit < 0x7F and unit != ord("\\") else f"\\u{unit:04x}" for unit in units)
