"""A tick of silver, up to its tables: what is new in bronze, whose it is, its order, and what may not be shown yet."""
