"""Ingestion into bronze: batches of streams, the state of bronze, objects, masking, and gaps that were skipped."""
