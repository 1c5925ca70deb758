"""Interpretation of Debezium's wire format: Column functions and values, no I/O (rules: debezium.md, types.md)."""
