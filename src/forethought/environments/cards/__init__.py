"""RL4VLM's four card and number games, written anew: rules, pictures, experts, ceilings."""
