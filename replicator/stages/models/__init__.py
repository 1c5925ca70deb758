"""A refresh of a gold model: what changed, which of its rows that affects, and its checks."""
