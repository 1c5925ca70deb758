"""EMR and MSK: what goes there, the calls that start it, and what it tells (docs/aws.md).

Pure parts make texts and requests (``msk``, ``sink``, ``runtime``, ``job``, ``archive``); ``serverless`` and ``cluster`` make the
calls; ``package``, ``artifacts``, ``logs`` and ``secrets`` touch what their names say.
"""
