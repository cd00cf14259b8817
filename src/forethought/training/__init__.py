"""Parts that every training loop shares: run, state, optimizer, phases."""
