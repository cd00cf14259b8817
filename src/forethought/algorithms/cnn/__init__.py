"""The baseline without words: PPO of a small network."""
