"""Where records come from: one file per kind behind ``Source``."""
