"""RL4VLM's four card and number games: rules, images, experts, ceilings."""
