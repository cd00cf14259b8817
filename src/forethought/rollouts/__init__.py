"""Collection of steps, and their storage."""
