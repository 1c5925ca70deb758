"""EMR and MSK: what goes there, the calls that start it, and what it tells (docs/aws.md).

``msk``, ``s3_sink``, ``runtime``, ``job`` and ``manifest`` make texts and requests, and ask nobody; ``serverless`` and
``cluster`` make the calls; ``package``, ``archive``, ``s3_folder``, ``logs`` and ``secrets`` touch what their names
say.
"""
