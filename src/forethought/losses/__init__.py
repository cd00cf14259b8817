"""Losses: pure functions of tensors that return a scalar and named statistics."""
