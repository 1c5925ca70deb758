"""A lake's tables in a catalog that Athena and others read: what is registered, how it differs from what is there."""
