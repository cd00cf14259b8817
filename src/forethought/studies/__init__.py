"""What differs, and by how much? Configurations × seeds, and the table that comes of them.

A study knows how cells are named, kept, resumed and counted. It trains nothing itself: how
a cell is trained and judged is handed to it.
"""
