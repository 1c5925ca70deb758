"""The events of a feed: from the commits of a table, or from all records of it."""
