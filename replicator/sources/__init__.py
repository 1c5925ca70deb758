"""The sources of records: one module per kind, behind ``Source``."""
