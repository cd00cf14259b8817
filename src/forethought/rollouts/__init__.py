"""How are steps gathered, and how are they stored?"""
