"""Which rows of a gold model a change of its inputs touches, and whether its SQL is one of which that can be told."""
