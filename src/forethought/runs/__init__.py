"""What does a run leave on the disk? Layout, lock, metrics, checkpoints."""
