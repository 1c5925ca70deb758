"""A single row: its key as typed by a user, its history in the lake, and what the merge did with each record."""
