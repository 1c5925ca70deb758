"""Table formats: implementations of ``TableFormat``."""
