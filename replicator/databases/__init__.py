"""Database clients: for comparing rows with the lake's (PostgreSQL, MariaDB, MySQL), and for checking that a source is
ready to be captured.
"""
