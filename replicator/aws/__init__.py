"""EMR and MSK: what is deployed there, the calls that start it, and its status (docs/aws.md).

``msk``, ``s3_sink``, ``runtime``, ``job`` and ``manifest`` build texts and requests without any calls; ``serverless``
and ``cluster`` make the calls; ``package``, ``archive``, ``s3_folder``, ``logs`` and ``secrets`` access what their
names say.
"""
