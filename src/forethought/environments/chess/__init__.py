"""Chess against an engine. The rules come from the `chess` package, which is an extra."""
