"""Changes -> canonical topics, for ``spark-submit --jars "$(replicator jars)" jobs/canonical.py --env local``."""

from replicator.cli.job import submit

if __name__ == "__main__":
    submit("canonical")
