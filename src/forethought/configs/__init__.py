"""Settings that several algorithms share, and how they are read from files."""
