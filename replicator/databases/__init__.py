"""Clients of databases: those whose rows are compared with the lake's (PostgreSQL, MariaDB, MySQL), and whether those
that are captured are ready for it.
"""
