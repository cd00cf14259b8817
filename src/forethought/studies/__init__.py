"""Comparisons: variants of settings × seeds, and the table of their results.

A study names, keeps, resumes and counts runs. It trains nothing itself: the functions that train
and evaluate a run are handed to it.
"""
