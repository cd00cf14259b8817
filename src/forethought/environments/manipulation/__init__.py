"""A robot arm on a table: pick an object up, or place it near another."""
