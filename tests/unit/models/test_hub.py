"""A model that cannot be fetched is refused at once, in one sentence that says why."""

from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from huggingface_hub import constants

from forethought.errors import PolicyError
from forethought.models.model_files import require_source


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[list[str]]:
    """A hub on this machine that answers with the error code it is given, and notes who asked."""
    answers: list[str] = []

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            answers.append(self.path)  # First: the client goes on as soon as it is answered.
            self.send_response(200 if answers[0] == "here" else 404)
            self.send_header("X-Error-Code", answers[0])
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Hub)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "ENDPOINT", address)
    template = "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + template)
    yield answers
    server.shutdown()
    thread.join()
    server.server_close()


def refusal(source: str) -> str:
    with pytest.raises(PolicyError) as error:
        require_source(source)
    line = str(error.value)
    start = f"model {source!r} does not exist here, and is no model that can be fetched from the "
    end = ' — pass a run folder, a model\'s folder, a hub id (owner/name), or "tiny"'
    assert line.startswith(start + "hub (")
    assert line.endswith(")" + end)
    return line.removeprefix(start + "hub (").removesuffix(")" + end)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("RepoNotFound", "there is none of this name; if it is private, `hf auth login` first"),
        (
            "GatedRepo",
            "its owner admits those who ask on its page: ask there, then `hf auth login`",
        ),
        ("EntryNotFound", "it has no config.json"),
    ],
)
def test_what_the_hub_refuses(hub: list[str], code: str, reason: str) -> None:
    hub.append(code)
    assert refusal("some/model") == reason
    assert hub[1:] == ["/some/model/resolve/main/config.json"]  # asked once, for a small file


def test_a_model_of_the_hub_is_accepted(hub: list[str]) -> None:
    hub.append("here")
    require_source("some/model")
    assert len(hub) == 2


def test_what_is_here_needs_no_hub(hub: list[str], tmp_path: Path) -> None:
    snapshot = tmp_path / "models--some--model" / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    refs = tmp_path / "models--some--model" / "refs"
    refs.mkdir()
    (refs / "main").write_text("0" * 40)
    require_source("some/model")
    require_source(str(tmp_path))
    assert hub == []


def test_a_misspelled_path_is_not_asked_for(hub: list[str], tmp_path: Path) -> None:
    assert refusal(str(tmp_path / "runs" / "sft")) == "it is not spelled like one"
    assert hub == []


def test_no_network_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    nowhere = "http://127.0.0.1:9/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", nowhere)
    assert refusal("some/model").startswith("no connection: ")


def test_offline_nobody_is_asked(hub: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert refusal("some/model") == "HF_HUB_OFFLINE is set, and it is not in the cache"
    assert hub == []


@pytest.mark.parametrize(
    ("source", "suggestion"),
    [
        ("runs/qickstart", " (did you mean runs/quickstart?)"),
        ("runs/qickstart/checkpoints/step_10", " (did you mean runs/quickstart?)"),
        ("run/quickstart", " (did you mean runs?)"),
        ("runs/ppo", ""),
        ("runs/quickstart/report.html", " (it is a file: expected a folder)"),
    ],
)
def test_a_mistyped_run_is_told_from_a_missing_network(
    source: str, suggestion: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "quickstart").mkdir(parents=True)
    (tmp_path / "runs" / "quickstart" / "report.html").write_text("")
    with pytest.raises(PolicyError) as error:
        require_source(source)
    start = f"model {source!r} does not exist here{suggestion}, and is no model that can be fetched"
    assert str(error.value).startswith(start)
    assert "\n" not in str(error.value)
