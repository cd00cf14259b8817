"""How do others talk to a trained policy? A server of the chat-completions protocol."""
