"""Two tables that must be equal: texts of values, sums of rows, ranges of keys, and what differs."""
