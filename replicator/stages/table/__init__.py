"""One table's share of a tick: its records decoded, its schema, its keys, its history, and what leaves it."""
