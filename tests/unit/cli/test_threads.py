"""How many threads are used: as asked, as the environment says, or one fewer than cores."""

from collections.abc import Iterator

import pytest
import torch

from forethought.cli import doctor
from forethought.configs.parts import ComputeConfig
from forethought.libraries import choose_threads, load_quietly
from forethought.training.processes import start_processes


@pytest.mark.parametrize(
    ("asked", "said", "cores", "processes", "count"),
    [
        pytest.param(3, "5", 2, 1, 3, id="a flag beats the variable"),
        pytest.param(None, "5", 2, 1, 5, id="the variable beats the default"),
        pytest.param(None, "5,2", 2, 1, 5, id="of nested levels the first"),
        pytest.param(None, "", 2, 1, 1, id="a core is left"),
        pytest.param(None, "many", 4, 1, 3, id="nonsense says nothing"),
        pytest.param(None, "0", 4, 1, 3, id="nor does zero"),
        pytest.param(None, "", 1, 1, 1, id="one core"),
        pytest.param(None, "", 9, 2, 4, id="two processes share eight"),
        pytest.param(None, "", 4, 8, 1, id="never none"),
    ],
)
def test_the_choice(asked: int | None, said: str, cores: int, processes: int, count: int) -> None:
    environ = {"OMP_NUM_THREADS": said}
    assert choose_threads(asked, cores=cores, processes=processes, environ=environ).threads == count


@pytest.fixture
def threads_before() -> Iterator[int]:
    before = torch.get_num_threads()
    yield before
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("said", "asked", "count"),
    [pytest.param("3", None, 3, id="OMP_NUM_THREADS"), pytest.param("3", 2, 2, id="a flag")],
)
@pytest.mark.usefixtures("threads_before")
def test_pytorch_gets_them(
    monkeypatch: pytest.MonkeyPatch, said: str, asked: int | None, count: int
) -> None:
    """In commands that load a model, and in training."""
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    for start in (
        lambda: load_quietly(threads=asked),
        lambda: start_processes(ComputeConfig(threads=asked)),
    ):
        torch.set_num_threads(1)
        start()
        assert torch.get_num_threads() == count


def test_doctor_says_how_many_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    (finding,) = (f for f in doctor.check_devices() if f.name == "threads")
    assert finding.message == "7 of PyTorch: OMP_NUM_THREADS says so"
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(doctor, "usable_cores", lambda: 2)
    (finding,) = (f for f in doctor.check_devices() if f.name == "threads")
    assert "of PyTorch: " in finding.message
