"""The recipes for schedulers, and the page about many machines, start commands that exist, with
flags that exist and values that are allowed, and that meet.

Stand-ins for Slurm's programs, for Ray and for a shell's `forethought` note what they are given;
our own parser reads it. The schedulers' own words are not checked.
"""

import importlib
import re
import runpy
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from forethought.algorithms.ppo.config import PPOConfig
from forethought.cli.commands import all_commands
from forethought.cli.settings import read_settings, settings_type
from forethought.configs.file import dump_config
from forethought.configs.parts import EnvironmentConfig
from forethought.runs.run_folder import RunFolder
from tests.engines import bandit, engine_of, save_model

DEPLOY = Path(__file__).parents[2] / "deploy"
PAGE = DEPLOY.parent / "docs" / "how_to" / "many_machines.md"
RUN, MODEL = Path("shared/runs/ppo"), "shared/runs/sft"
"""The recipes' folders, below the folder in which their commands are typed here."""


def settings_of(words: list[str]) -> Any:
    """What a command would run with.

    Args:
        words: what is typed after `forethought`.
    """
    command = next(c for c in all_commands() if words[: len(c.name.split())] == c.name.split())
    rest = words[len(command.name.split()) :]
    module, _, name = command.target.partition(":")
    function = getattr(importlib.import_module(module), name)
    if command.algorithm is None:
        kind, default = settings_type(function), None
    else:
        made = function(command.algorithm)
        kind, default = made.kind, made.defaults(rest)
    return read_settings(kind, rest, program=command.name, description="", default=default)


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands, in their order, are understood; each engine that is asked is served, and takes
    the weights of the run that asks."""
    monkeypatch.chdir(tmp_path)
    Path("configs").symlink_to(DEPLOY.parent / "configs")
    begin_run(Path("runs/ppo"))
    blocks = re.findall(r"^```\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    commands = [shlex.split(re.sub(r"( 2> \S+)? &$", "", line)) for line in lines]
    read = [
        (words[1], settings_of(words[1:])) for words in commands if words[:1] == ["forethought"]
    ]
    served: dict[str, Any] = {}
    for name, settings in read:
        if name == "serve":
            served[f"http://{settings.host}:{settings.port}"] = settings
        elif name == "evaluate":
            assert [served[url].run for url in settings.engine] == [settings.run]
        elif name == "train" and (urls := getattr(settings.settings, "generation", None)):
            for url in urls.engine:
                assert served[url].run == settings.settings.model
                published = RunFolder(Path(settings.settings.output)).published_dir
                assert served[url].weights_from == published
    assert [name for name, _ in read].count("train") == 5
    assert len(served) == [name for name, _ in read].count("serve")  # No port is taken twice.


def recipe(name: str) -> str:
    """Its text, with relative paths for those of the shared disk."""
    return (DEPLOY / name).read_text(encoding="utf-8").replace("/shared/", "shared/")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands are typed, with programs that only note their words first on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    for name in ("bin", "calls"):
        Path(name).mkdir()
    for name in ("srun", "scancel", "forethought"):
        stand_in(name, f'printf "%s\\0" {name} "$@" > "$(mktemp calls/XXXXXX)"')
    return tmp_path


def stand_in(name: str, script: str) -> None:
    program = Path("bin", name)
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)


def typed(command: str) -> list[list[str]]:
    """The words of all programs that a command line started, once all of them have ended."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [path.read_text(encoding="utf-8").split("\0")[:-1] for path in Path("calls").iterdir()]


def begin_run(run: Path = RUN) -> None:
    """As the trainer leaves it when the job ends before it does."""
    run.mkdir(parents=True)
    config = PPOConfig(model=MODEL, output=str(run), environment=EnvironmentConfig("Blackjack"))
    (run / "config.yaml").write_text(dump_config(config), encoding="utf-8")


def assert_meet(serve: Any, work: Any, train: Any, engines: list[str], *, is_begun: bool) -> None:
    """Engine, worker and trainer are of one run, and find one another."""
    assert serve.run == MODEL
    assert serve.host == "0.0.0.0"  # Heard by other machines.
    assert work.run == RUN
    assert serve.weights_from == RunFolder(RUN).published_dir
    if is_begun:
        assert Path(train.resume) == RUN
        return
    assert (train.resume, train.settings.model) == (None, MODEL)
    assert Path(train.settings.output) == RUN
    assert train.settings.environment.id == "Blackjack"
    assert train.settings.generation.workers
    assert train.settings.generation.engine == tuple(engines)


@pytest.mark.parametrize("is_begun", [False, True])
def test_slurm(folder: Path, is_begun: bool) -> None:
    """Red: a flag was renamed, the trainer asks another node or port, or starts the run again."""
    script = shlex.quote(str(folder / "slurm.sbatch"))
    (folder / "slurm.sbatch").write_text(recipe("slurm.sbatch"), encoding="utf-8")
    stand_in("sbatch", f'shift; SLURM_JOB_ID=7 SLURM_JOB_NODELIST="n[1-2]" bash {script} "$@"')
    stand_in("scontrol", r'[ "$*" = "show hostnames n[1-2]" ] && printf "n1\nn2\n"')
    if is_begun:
        begin_run()
    command = re.search(r"^# +(sbatch deploy/slurm\.sbatch .*)$", recipe("slurm.sbatch"), re.M)
    assert command is not None
    calls = typed(command[1].replace("runs/sft", MODEL))
    (cancel,) = [call for call in calls if call[0] == "scancel"]
    assert cancel[-1] == "7"
    started = {}
    for call in calls:
        if call[0] == "srun":
            at = call.index("forethought")
            started[call[at + 1]] = (call[1:at], settings_of(call[at + 1 :]))
    assert sorted(started) == ["serve", "train", "work"]
    (serve_on, serve), (_, work), (_, train) = (started[n] for n in ("serve", "work", "train"))
    assert "--nodelist=n2" in serve_on
    assert_meet(serve, work, train, [f"http://n2:{serve.port}"], is_begun=is_begun)


@pytest.mark.parametrize("is_begun", [False, True])
def test_kubernetes(folder: Path, is_begun: bool) -> None:
    """Red: a flag was renamed, or names, ports and replicas do not fit one another."""
    items = list(yaml.safe_load_all(recipe("kubernetes.yaml")))
    named = {(item["kind"], item["metadata"]["name"]): item["spec"] for item in items}
    engine, service = named["StatefulSet", "engine"], named["Service", "engine"]
    pods = {name: spec["template"] for (_, name), spec in named.items() if "template" in spec}
    assert sorted(pods) == ["engine", "trainer", "workers"]
    containers = {}
    for name, pod in pods.items():
        (container,) = pod["spec"]["containers"]
        (mount,), (volume,) = container["volumeMounts"], pod["spec"]["volumes"]
        assert (mount["name"], mount["mountPath"]) == (volume["name"], "/shared")
        assert name == "engine" or pod["spec"]["restartPolicy"] == "OnFailure"
        containers[name] = container
    assert engine["selector"]["matchLabels"] == pods["engine"]["metadata"]["labels"]
    assert service["selector"] == pods["engine"]["metadata"]["labels"]
    serve = settings_of(containers["engine"]["args"][1:])
    work = settings_of(containers["workers"]["args"][1:])
    for ports in (containers["engine"]["ports"][0]["containerPort"], service["ports"][0]["port"]):
        assert ports == serve.port
    if is_begun:
        begin_run()
    (script,) = containers["trainer"]["args"]
    ((_, *words),) = typed(shlex.join([*containers["trainer"]["command"], script]))
    urls = [f"http://engine-{n}.{engine['serviceName']}:{serve.port}" for n in (0, 1)]
    assert engine["replicas"] == len(urls)
    assert_meet(serve, work, settings_of(words), urls, is_begun=is_begun)


def test_kubernetes_finds_the_engine_ready(tmp_path: Path) -> None:
    """The probe that the recipe sends is answered."""
    items = list(yaml.safe_load_all(recipe("kubernetes.yaml")))
    probe = items[0]["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]
    headers = {header["name"]: header["value"] for header in probe["httpHeaders"]}
    with engine_of(save_model(tmp_path / "model", bandit()), None) as url:
        request = urllib.request.Request(url + probe["path"], headers=headers)
        with urllib.request.urlopen(request, timeout=60) as reply:
            assert reply.status == 200


@pytest.mark.parametrize("code", [0, 2])
def test_ray(
    code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each worker is a command of ours; Ray starts those again whose process was lost."""
    commands: list[list[str]] = []
    options: dict[str, Any] = {}

    def remote(**given: Any) -> Any:
        options.update(given)
        return lambda function: SimpleNamespace(remote=function)

    def forethought(words: list[str]) -> int:
        commands.append(words)
        print("" if code else "5 episodes")
        return code

    stand_ins = {"init": lambda address: None, "wait": lambda all_: (all_[:1], all_[1:])}
    ray = SimpleNamespace(remote=remote, get=lambda result: result, **stand_ins)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr("forethought.cli.main.main", forethought)
    command = re.search(r"^ +python (deploy/ray_workers\.py .*)$", recipe("ray_workers.py"), re.M)
    assert command is not None
    words = shlex.split(command[1])
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(DEPLOY / "ray_workers.py"), run_name="__main__")
    assert end.value.code == code
    assert len(commands) == int(words[words.index("--workers") + 1])
    line = f"a worker ended with exit code {code}\n" if code else "5 episodes\n"
    assert capsys.readouterr().out == line * len(commands)
    assert options["max_retries"] == -1
    for given in commands:
        assert settings_of(given).run == RUN
