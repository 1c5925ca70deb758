"""How tables are kept: one file per format behind ``TableFormat``."""
