"""Evaluation: held-out episodes, intervals, reference rows."""
