"""The whole job, live: ``python -m infra.demo`` (``make demo``)."""
