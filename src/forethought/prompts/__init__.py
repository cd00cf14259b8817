"""What is the agent told, and what did it answer?"""
