"""Files and folders that are whole or absent, whatever kills the process or the machine.

What is written goes by a temporary name until it is complete and on the disk.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def publish(temporary: Path, final: Path) -> None:
    """Gives a complete file or folder its name, in one step that survives a power cut.

    Args:
        final: in the same folder as the temporary one. A file of this name is replaced, a
            folder must not be there.

    Raises:
        OSError: the disk refuses. The temporary one may be there still.
    """
    for path in (*temporary.rglob("*"), temporary):
        flush(path)
    temporary.replace(final)
    flush(final.parent)


@contextmanager
def published(file: BinaryIO, final: Path) -> Generator[BinaryIO]:
    """An open temporary file that gets the name `final` when the block ends well, and
    vanishes when it does not; in both cases it is closed.

    Raises:
        OSError: as `publish`.
    """
    temporary = Path(file.name)
    try:
        yield file
        file.flush()
        publish(temporary, final)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    finally:
        with suppress(OSError):  # What was not written by now has been reported above.
            file.close()


def flush(path: Path) -> None:
    """Returns when a file, or a folder's list of names, is on the disk.

    Raises:
        OSError: the disk refuses.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
