"""Commands as they are typed."""

import tempfile


def words_of(typed: str) -> list[str]:
    """The words of a command, parted by blanks; a blank in the name of the folder for temporary
    files, as continuous integration has it, parts nothing."""
    folder = tempfile.gettempdir()
    return [word.replace("\0", folder) for word in typed.replace(folder, "\0").split()]
