"""The four sentences: bronze, silver, gold, publish. They meet protocols, never an implementation."""
