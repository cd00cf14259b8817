"""Reference pages that are written from the source code when the site is built.

A page asks for them by a fenced block of one line each, which is replaced by Markdown before the
page is read:

    ```{from_code}
    api forethought.losses
    ```

    api PACKAGE [PACKAGE…]    public classes and functions of these packages and modules
    configuration             every configuration dataclass: fields, types, defaults, docstrings
    metrics                   every number that training and evaluation log
    commands                  every command with its line of help
    environments              every environment: observations, actions, reward, options

The code is parsed (griffe); the lists of charts, commands and environments alone are imported.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import api_pages
import configuration_page
import griffe
import metrics_page
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util import logging

from forethought.cli.commands import all_commands
from forethought.environments import list_environments
from forethought.environments.registry import EnvironmentSpec

LOG = logging.getLogger(__name__)
SOURCE = Path(__file__).resolve().parents[2] / "src"
BLOCK = re.compile(r"^```\{from_code\}\n(?P<request>.*?)\n```$", re.MULTILINE | re.DOTALL)


def setup(app: Sphinx) -> dict[str, Any]:
    reference = Reference()
    app.connect("source-read", reference.write_blocks)
    app.connect("env-get-outdated", pages_with_blocks)
    return {"parallel_read_safe": False}


def pages_with_blocks(app: Sphinx, env: BuildEnvironment, *_: object) -> list[str]:
    """Read again at every build: no file that Sphinx watches says that they are old."""
    del app
    paths = {name: Path(env.doc2path(name)) for name in env.found_docs}
    return [name for name, path in paths.items() if BLOCK.search(path.read_text("utf-8"))]


class Reference:
    """The parsed code, and the Markdown that pages ask for."""

    def __init__(self) -> None:
        self.code: griffe.Module = griffe.load(
            "forethought",
            search_paths=[SOURCE],
            allow_inspection=False,
            docstring_parser=griffe.Parser.google,
            docstring_options={"warnings": False},
        )

    def write_blocks(self, app: Sphinx, page: str, content: list[str]) -> None:
        """Replaces the blocks of one page."""
        del app
        content[0] = BLOCK.sub(lambda found: "\n".join(self.written(found[1], page)), content[0])

    def written(self, request: str, page: str) -> Iterator[str]:
        kind, *packages = request.split()
        if kind == "api":
            for package in packages:
                for module in self.found(package, page):
                    yield from api_pages.package(module)
        elif kind == "configuration":
            yield from configuration_page.page(self.code)
        elif kind == "metrics":
            yield from metrics_page.page(self.code)
        elif kind == "commands":
            yield from command_list()
        elif kind == "environments":
            for spec in list_environments():
                yield from environment(spec)
        else:
            expected = "api, configuration, metrics, commands or environments"
            raise ExtensionError(f"from_code: got {kind!r}, expected {expected}")

    def found(self, package: str, page: str) -> Iterator[griffe.Module]:
        try:
            yield self.code[package.removeprefix("forethought.")]
        except KeyError:
            LOG.warning("api %s: there is no such module", package, location=page)


def command_list() -> Iterator[str]:
    """As `forethought` prints it."""
    yield "| command | what it does |"
    yield "|---|---|"
    for command in all_commands():
        yield f"| `forethought {command.name}` | {command.summary} |"


def environment(spec: EnvironmentSpec) -> Iterator[str]:
    """As `forethought envs NAME` prints it."""
    yield f"### {spec.name}"
    yield ""
    yield spec.summary
    yield ""
    yield f"- observation: {spec.observation}"
    yield f"- actions: `{spec.actions}`"
    yield f"- reward: `{spec.reward}`"
    yield f"- success: {spec.success}"
    if spec.extra:
        yield f'- installation: `pip install "forethought[{spec.extra}]"`'
    for option in spec.options:
        yield f"- `{option.name}={option.default}`: {option.meaning}: {option.allowed}"
    yield ""
