"""What is the agent asked, and what did it respond?"""
