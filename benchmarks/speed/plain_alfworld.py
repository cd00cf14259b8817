"""The package's own engine, unmodified: what the fast one must agree with, word for word."""

from typing import Any

from forethought.environments.alfworld.engine import Fact, GameText
from forethought.environments.alfworld.package import import_alfworld, load_libraries


class PlainEngine:
    """`PddlEnv` under the package's naming wrapper, with the surface of `Engine`.

    A second or two for a start, a tenth of a second for a step.
    """

    def __init__(self) -> None:
        load_libraries()
        import textworld
        from textworld.envs.pddl import PddlEnv

        wrapper = import_alfworld("alfworld.agents.environment.alfred_tw_env").AlfredDemangler
        wanted = textworld.EnvInfos(won=True, admissible_commands=True, facts=True, feedback=True)
        self._environment: Any = wrapper(PddlEnv(wanted))
        self._state: Any = None

    def start(self, game: GameText) -> str:
        """Loads the game, and begins it."""
        texts = {
            "pddl_domain": game.domain,
            "pddl_problem": game.problem,
            "grammar": game.grammar,
        }
        self._environment.load(texts)
        return self.restart()

    def restart(self) -> str:
        """Begins the loaded game anew."""
        self._state = self._environment.reset()
        return str(self._state.feedback)

    @property
    def commands(self) -> tuple[str, ...]:
        return tuple(self._state["admissible_commands"])

    @property
    def won(self) -> bool:
        return bool(self._state["won"])

    def step(self, command: str) -> str:
        self._state, _, _ = self._environment.step(command)
        return str(self._state.feedback)

    def facts(self) -> tuple[Fact, ...]:
        return tuple(
            Fact(fact.name, tuple(fact.names))
            for fact in self._state["facts"]
            if "@" not in fact.name
        )

    def close(self) -> None:
        self._environment.close()
