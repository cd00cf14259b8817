"""How a policy writes: the decode loop and what it is made of."""
