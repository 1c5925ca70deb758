"""A table made once more: its shadow, what would be lost, how it takes over, and where a stream goes on."""
