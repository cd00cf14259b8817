"""Offline ArCHer."""
