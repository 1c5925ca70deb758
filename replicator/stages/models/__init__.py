"""A refresh of a gold model: what moved, which of its rows that touches, and which rules hold."""
