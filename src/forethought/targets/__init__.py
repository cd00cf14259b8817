"""Targets: returns, advantages, preference pairs and value targets, as pure functions."""
