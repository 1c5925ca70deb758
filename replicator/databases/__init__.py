"""Clients of databases whose rows are compared with the lake's: PostgreSQL, MariaDB, MySQL."""
