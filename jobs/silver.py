"""Bronze -> silver, for ``spark-submit --jars "$(replicator jars)" jobs/silver.py --env local``."""

from replicator.cli.job import submit

if __name__ == "__main__":
    submit("silver")
