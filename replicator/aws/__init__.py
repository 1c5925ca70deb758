"""EMR and MSK: what goes there, the calls that start it, and what it tells (docs/aws.md).

``msk``, ``sink``, ``runtime``, ``job`` and ``packed`` make texts and requests, and ask nobody; ``serverless`` and
``cluster`` make the calls; ``package``, ``archive``, ``place``, ``logs`` and ``secrets`` touch what their names say.
"""
