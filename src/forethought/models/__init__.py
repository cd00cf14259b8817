"""Models that score and judge: loading, tokens in and out, adapters, heads."""
