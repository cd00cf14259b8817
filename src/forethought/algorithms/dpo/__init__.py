"""Preference optimization, step by step."""
