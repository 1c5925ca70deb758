"""``python -m replicator`` is the command line."""

from replicator.cli import main

main()
