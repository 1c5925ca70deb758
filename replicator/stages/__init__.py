"""The stages bronze, silver, gold and publish. They depend on protocols, never on an implementation."""
