"""Implicit language Q-learning."""
