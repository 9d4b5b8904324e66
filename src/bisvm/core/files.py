"""Files that are always complete: written to a temporary file, then renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name when it is complete.

    If the path is a symbolic link, its target is replaced. A new file gets the
    permissions of the umask; a file that is replaced keeps its permissions. After an
    error, an old file is unchanged and no part of a new one is left.

    Raises
    ------
    OSError
        With the name of the file, if it cannot be written: there is no such folder, no
        permission, or no space.
    """
    if Path(path).exists() and not Path(path).is_file():
        # A device such as /dev/stdout, or a pipe: there is nothing to replace.
        with Path(path).open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{target.name[:200]}.{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            os.chmod(part, target.stat().st_mode & 0o7777)
        os.replace(part, target)
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(part)):
            raise
        # Name the file that was asked for, not the part of it.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        with suppress(OSError):
            part.unlink()
