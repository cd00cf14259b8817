"""How are weights changed? One plain loop per algorithm."""
