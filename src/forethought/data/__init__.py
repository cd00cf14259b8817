"""Data sets of stored episodes: description, validation, conversion from other formats."""
