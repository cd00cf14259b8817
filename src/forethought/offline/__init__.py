"""Stored episodes as sequences of tokens to learn from."""
