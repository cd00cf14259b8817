"""What a person may name as a model, and the folder that it stands for."""

from pathlib import Path

from forethought.runs.checkpoints import newest_checkpoint
from forethought.runs.run_folder import RunFolder

TINY = "tiny"
"""The embedded model, made from nothing."""
MODEL_DIR = "model"
"""Inside a checkpoint: what `save_pretrained` wrote."""


def model_source(name: str) -> str:
    """Resolves a run folder or a checkpoint to the model folder inside.

    Anything else (a folder of `save_pretrained`, a hub id) is returned as it is.

    Raises:
        CheckpointError: the run's newest checkpoint is damaged, or there is none.
    """
    path = Path(name)
    if (path / MODEL_DIR).is_dir():
        return str(path / MODEL_DIR)
    folder = RunFolder(path)
    if folder.is_run:
        return str(newest_checkpoint(folder.checkpoints_dir) / MODEL_DIR)
    return name
