"""Registration of a lake's tables in external catalogs, and queries through other engines."""
