"""What a table's `transform` makes of changes, whether it can, and what its SQL reads."""
