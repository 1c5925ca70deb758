"""Incremental refresh of gold models: which rows a change of the inputs affects, and which models are eligible."""
