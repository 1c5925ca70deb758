"""Kafka -> bronze, for ``spark-submit --jars "$(replicator jars)" jobs/bronze.py --env local``."""

from replicator.cli.job import submit

if __name__ == "__main__":
    submit("bronze")
