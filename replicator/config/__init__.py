"""What people write in files below ``conf/``: keys, their defaults, what they may say, and where each value stands.

``settings.py`` makes one frozen value of it all. Nothing here loads pyspark, reads the environment or sees a lake.
"""
