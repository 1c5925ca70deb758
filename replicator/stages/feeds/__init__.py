"""What a feed tells others: of the commits of a table, or of all records of it."""
