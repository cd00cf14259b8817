"""What a person may name as a model, and the folder that it stands for."""

from pathlib import Path

from forethought.runs.checkpoints import MANIFEST, is_checkpoint, newest_checkpoint, require_good
from forethought.runs.run_folder import RunFolder

MODEL_DIR = "model"
"""Inside a checkpoint: what `save_pretrained` wrote."""


def model_source(name: str) -> str:
    """Resolves a run folder or a checkpoint to the model folder inside.

    Anything else (a folder of `save_pretrained`, a hub id) is returned as it is.

    Raises:
        CheckpointError: as `find_checkpoint`.
    """
    checkpoint = find_checkpoint(Path(name))
    return name if checkpoint is None else str(checkpoint / MODEL_DIR)


def find_checkpoint(path: Path) -> Path | None:
    """The checkpoint that is named, or the newest one of the run that is; None where the
    path is neither. Its files are verified.

    Raises:
        CheckpointError: it is damaged, or the run has none.
    """
    folder = RunFolder(path)
    if folder.is_run:
        return newest_checkpoint(folder.checkpoints_dir)
    # A checkpoint may have been copied; and other trainers name folders so, too.
    if (path / MANIFEST).is_file() or (is_checkpoint(path) and (path / MODEL_DIR).is_dir()):
        require_good(path)
        return path
    return None
