"""One folder per algorithm: settings, loop, targets."""
