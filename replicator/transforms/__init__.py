"""DataFrame -> DataFrame: no session, no path, no clock."""
