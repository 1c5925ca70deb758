"""The status of each layer, computed from facts that are read from a lake with or without Spark."""
