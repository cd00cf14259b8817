"""Sokoban: push the boxes onto the targets."""
