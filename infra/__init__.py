"""What the demo runs on: the local stack, the sample sources, the lab. Not part of the package."""
