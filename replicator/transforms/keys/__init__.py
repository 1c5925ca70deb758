"""Keys of changes: how records identify their row, and rows that change or swap their keys."""
