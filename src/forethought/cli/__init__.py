"""What can be typed: `forethought COMMAND`, one file per command."""
