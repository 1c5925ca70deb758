"""One table's share of a tick: decoding its records, its schema, its keys, its history, and its deleted rows."""
