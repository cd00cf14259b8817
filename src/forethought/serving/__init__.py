"""A server that offers a trained policy through an OpenAI-compatible API."""
