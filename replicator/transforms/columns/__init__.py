"""The columns of a silver table: their layout, schema evolution under a policy, and the reshaping of stored rows."""
