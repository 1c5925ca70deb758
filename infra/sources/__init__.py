"""Sample databases that the demo and the tests replicate from."""
