"""A table's ``transform``: its validation against the table's columns, and its execution on changes."""
