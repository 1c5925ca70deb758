"""Where everything stands: the facts that are asked of a lake, by Spark or without, and what they say of each layer."""
