"""The JVM that Spark runs in: which Java and Spark, the JARs, what it is told, and short ways into it from Python.

``session.py`` starts it with these. Only what asks a running JVM imports pyspark.
"""
