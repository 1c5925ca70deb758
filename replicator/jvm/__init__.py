"""The JVM that runs Spark: the choice of Java and Spark, the JARs, its settings, and shortcuts into it from Python.

``session.py`` starts it with these. Only modules that use a running JVM import pyspark.
"""
