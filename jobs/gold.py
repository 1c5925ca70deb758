"""Silver -> gold, for ``spark-submit --jars "$(replicator jars)" jobs/gold.py --env local``."""

from replicator.cli.job import submit

if __name__ == "__main__":
    submit("gold")
