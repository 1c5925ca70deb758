"""One row: its key as people type it, what the lake knows about it, and what the merge did with each record."""
