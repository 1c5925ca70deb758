"""The columns of a silver table: how they lie, what may change in them, what does, and rows in their new shape."""
