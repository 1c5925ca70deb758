"""Is a source ready to be captured? Questions to its catalogs, judgements over the answers, each with its mend.

A kind of database is one module: ``QUESTIONS``, by name, and ``judge``, which asks nothing. Only ``preflight`` reaches
a server, so that what is said of a database can be shown over answers written down.
"""
