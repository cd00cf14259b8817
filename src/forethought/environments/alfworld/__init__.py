"""ALFWorld: household tasks in words and pictures, on the package's own engine."""
