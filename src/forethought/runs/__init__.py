"""The run folder: layout, lock, metrics, checkpoints."""
