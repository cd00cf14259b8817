"""How good is it? Held-out episodes, intervals, reference rows."""
