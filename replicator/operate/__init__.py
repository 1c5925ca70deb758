"""Operations on a running replicator: status, verification, rebuilds, dead letters, maintenance and the write lock."""
