"""ALFWorld: household tasks in words and images, on the package's own engine."""
