"""Comparison of two tables: canonical values, checksums, key ranges, and differences."""
