"""Any registered Gymnasium environment, by its id: `--environment.id gym:FrozenLake-v1`."""
