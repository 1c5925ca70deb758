"""What the wire means: Column functions and values, no I/O (reference rules: debezium.md, types.md)."""
