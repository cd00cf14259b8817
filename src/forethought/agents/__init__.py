"""Who plays: a run, a checkpoint, a model, an endpoint or a script; opened by its name, evaluated,
and collected from."""
