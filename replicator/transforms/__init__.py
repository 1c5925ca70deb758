"""Pure DataFrame transformations: no session, no path, no clock."""
