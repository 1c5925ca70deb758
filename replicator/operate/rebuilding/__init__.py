"""Parts of a rebuild: the shadow table, the rows that would be lost, the swap, and the offsets to resume from."""
