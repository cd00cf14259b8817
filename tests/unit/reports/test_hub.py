"""A run on the hub: the files that are pushed, to a folder and to a hub on this machine."""

import base64
import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import huggingface_hub.constants
import pytest
import yaml

import forethought as ft
from forethought.cli.main import main
from forethought.errors import ConfigError, StorageError
from forethought.reports.hub import push_run
from forethought.runs.run_folder import RunFolder

FILES = {"README.md", "training_config.yaml", "evaluation.json", "config.json", "model.safetensors"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Trained on one update, and evaluated on four episodes."""
    run = ft.train(
        "sft",
        output=tmp_path_factory.mktemp("hub") / "run",
        environment="Bandit",
        expert_steps=8,
        batch_size=8,
        epochs=1,
        compute=ft.ComputeConfig(threads=1),
    )
    ft.evaluate(run, episodes=4, threads=1)
    return run


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as an upload of small files asks for."""

    asked: list[str]
    files: dict[str, bytes]
    refuses = False

    def do_POST(self) -> None:
        """Makes a repository, chooses how files come, and takes a commit."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        type(self).asked.append(self.path)
        base = f"http://127.0.0.1:{self.server.server_port}/me/agent"  # type: ignore[attr-defined]
        if self.refuses:
            self.answer(403, {"error": "not yours"})
        elif self.path.endswith("/repos/create"):
            self.answer(200, {"url": base, "name": "me/agent"})
        elif "/preupload/" in self.path:
            paths = [file["path"] for file in json.loads(body)["files"]]
            ways = [
                {"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in paths
            ]
            self.answer(200, {"files": ways})
        elif "/commit/" in self.path:
            for line in body.splitlines():
                item = json.loads(line)
                if item["key"] == "file":
                    value = item["value"]
                    type(self).files[value["path"]] = base64.b64decode(value["content"])
            self.answer(200, {"commitUrl": f"{base}/commit/1", "commitOid": "1"})
        else:
            self.answer(200, {"warnings": [], "errors": []})

    def answer(self, status: int, content: Any) -> None:
        """Sends JSON."""
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def hub(monkeypatch: pytest.MonkeyPatch, *, refuses: bool = False) -> Generator[tuple[str, Any]]:
    """A hub on this machine, and the handler that remembers what came."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    handler = type("Handler", (Hub,), {"asked": [], "files": {}, "refuses": refuses})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_folder_gets_what_would_be_uploaded(
    run: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["push", str(run), "me/agent", "--folder", str(tmp_path / "out")]) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} >= FILES
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    header = yaml.safe_load(card.split("---")[1])
    [found] = header["model-index"][0]["results"]
    stored = json.loads(run.evaluation_path.read_text(encoding="utf-8"))
    assert found["metrics"][0]["value"] == round(stored["success_rate"], 4)
    assert found["dataset"]["name"] == "Bandit"
    assert f"| policy | {100 * stored['success_rate']:.1f} % [" in card
    assert "| random | " in card
    assert ft.evaluate(tmp_path / "out", environment="Bandit", episodes=4, threads=1).success


def test_a_hub_gets_the_same(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(monkeypatch) as (endpoint, handler):
        assert push_run(run, "me/agent", endpoint=endpoint) == f"{endpoint}/me/agent"
    assert set(handler.files) >= FILES
    newest = max(run.checkpoints_dir.iterdir())
    weights = (newest / "model" / "model.safetensors").read_bytes()
    assert handler.files["model.safetensors"] == weights


def test_a_hub_that_refuses_is_one_line(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        hub(monkeypatch, refuses=True) as (endpoint, _),
        pytest.raises(StorageError, match=r"me/agent: cannot be pushed: .*hf auth login"),
    ):
        push_run(run, "me/agent", endpoint=endpoint)
    with pytest.raises(ConfigError, match="expected owner/name"):
        push_run(run, "a/b/c")
