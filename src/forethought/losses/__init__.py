"""How wrong was it? Pure functions: tensors in, a scalar and named statistics out."""
