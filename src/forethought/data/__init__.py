"""What lies in a data set? Described, checked, and brought in from other formats."""
