"""Looking after a running replicator: what is where, how far behind, and who may write."""
