"""The files below ``conf/``: their keys, defaults and valid values, and the origin of each value.

``settings.py`` combines them into one frozen value. Nothing here imports pyspark, reads the environment or accesses a
lake.
"""
