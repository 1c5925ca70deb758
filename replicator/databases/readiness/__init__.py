"""Readiness checks: is a source ready to be captured? Catalog queries, and findings over their results, with fixes.

Each kind of database has a module with ``QUERIES`` (or ``queries``), by name, and ``evaluate``, which sends none. Only
``preflight`` connects to a server, so that findings can be tested over recorded results.
"""
