"""Which launches are accepted, and what the refused ones are told."""

import pytest
from accelerate.utils import DistributedType

from forethought.errors import ConfigError
from forethought.training.processes import refuse_launch


@pytest.mark.parametrize(
    ("strategy", "processes"),
    [
        (DistributedType.NO, 1),
        (DistributedType.MULTI_CPU, 2),
        (DistributedType.MULTI_GPU, 4),
        (DistributedType.FSDP, 2),
        (DistributedType.DEEPSPEED, 2),
    ],
)
def test_one_process_data_parallelism_shards_and_partitions_are_accepted(
    strategy: DistributedType, processes: int
) -> None:
    refuse_launch(strategy, processes, {"WORLD_SIZE": str(processes)})


@pytest.mark.parametrize(
    ("strategy", "environ", "named"),
    [
        (DistributedType.MEGATRON_LM, {}, "accelerate launched MEGATRON_LM"),
        (DistributedType.NO, {"ACCELERATE_USE_FSDP": "true"}, "FSDP with 1 process — expected two"),
        (DistributedType.NO, {"ACCELERATE_USE_DEEPSPEED": "True"}, "DEEPSPEED with 1 process"),
        (DistributedType.DEEPSPEED, {"ACCELERATE_USE_DEEPSPEED": "true"}, "expected two or more"),
    ],
)
def test_others_are_refused_also_where_accelerate_ignores_them(
    strategy: DistributedType, environ: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        refuse_launch(strategy, 1, environ)


def test_processes_that_do_not_find_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"2 processes were launched, .* ACCELERATE_USE_CPU=true"):
        refuse_launch(DistributedType.NO, 1, {"WORLD_SIZE": "2"})
