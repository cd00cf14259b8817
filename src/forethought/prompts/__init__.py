"""Prompts, and the parser of responses."""
