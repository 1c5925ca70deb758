"""Gold -> Postgres, for ``spark-submit --jars "$(replicator jars)" jobs/publish.py --env local``."""

from replicator.cli.job import submit

if __name__ == "__main__":
    submit("publish")
