"""How wrong a policy is about which of two answers is better: one objective per file."""
