"""The key of a change: where records tell it, rows that change theirs, and who holds one meanwhile."""
