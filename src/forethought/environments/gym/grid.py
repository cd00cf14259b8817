"""MiniGrid and BabyAI: what is seen in words, and two experts: BabyAI's own bot, and a search over
the grid where the mission is to reach the goal."""

import json
from collections import deque
from importlib import import_module
from typing import Any, NamedTuple

from forethought.environments.contract import Ceiling, ExpertAction
from forethought.environments.gym.knowledge import GymEnv

FACING = ("east", "south", "west", "north")
STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Steps in the four directions, column and row."""
WALL, DOOR, BACKGROUND = 2, 4, (0, 1, 3)
"""Numbers of kinds of objects in an observation: walls, doors, and unseen, empty and floor."""
DOOR_STATES = ("open", "closed", "locked")
MOVES = ("left", "right", "forward", "pickup", "toggle")


def is_grid(environment: GymEnv) -> bool:
    """Whether it is a MiniGrid environment with the usual observation."""
    kinds = {kind.__name__ for kind in type(environment.unwrapped).__mro__}
    parts = getattr(environment.observation_space, "spaces", {})
    return "MiniGridEnv" in kinds and {"image", "direction", "mission"} <= set(parts)


class GridKnowledge:
    """Knowledge of one instance of MiniGrid or BabyAI."""

    wins_by_ending: bool = False
    knows_state: bool = True
    fields: tuple[str, ...] = ("seen", "thoughts")

    def __init__(self, environment: GymEnv, actions: tuple[str, ...]) -> None:
        self._environment = environment
        self._inner: Any = environment.unwrapped
        self.actions = actions
        self.goal = "Reach the goal."
        constants = import_module("minigrid.core.constants")
        self._kinds: dict[int, str] = constants.IDX_TO_OBJECT
        self._colors: dict[int, str] = constants.IDX_TO_COLOR
        self._is_babyai = "BabyAI" in str(environment.spec.id if environment.spec else "")
        self.has_expert = self._is_babyai or self._has_goal()
        self._bot: Any = None
        self._advised: Any = None

    def ceiling(self, limit_steps: int) -> Ceiling | None:
        """Not known."""
        return None

    def words(self, observation: Any) -> str:
        """Direction, what is carried, and what is seen."""
        lines = [f"facing {FACING[int(observation['direction'])]}", self.seen(observation)]
        carried = self._inner.carrying
        if carried is not None:
            lines.insert(1, f"carrying {carried.color} {carried.type}")
        return "\n".join(lines)

    def seen(self, observation: Any) -> str:
        """Things in view, nearest first, and how far one can see ahead, left and right."""
        image = observation["image"]
        width, height = image.shape[:2]
        x0, y0 = width // 2, height - 1
        things: list[tuple[int, str]] = []
        for x in range(width):
            for y in range(height):
                kind, color, state = (int(part) for part in image[x, y])
                if (x, y) == (x0, y0) or kind in (*BACKGROUND, WALL):
                    continue
                name = f"{self._colors[color]} {self._kinds[kind]}"
                if kind == DOOR:
                    name = f"{DOOR_STATES[state]} {name}"
                distance = y0 - y + abs(x - x0)
                things.append((distance, f"{name} {_where(y0 - y, x - x0)}"))
        free = [
            f"{name} {_free(image, x0, y0, step)}"
            for name, step in (("ahead", (0, -1)), ("left", (-1, 0)), ("right", (1, 0)))
        ]
        listed = "; ".join(thing for _, thing in sorted(things)) or "nothing"
        return f"{listed}. free: {', '.join(free)}"

    def state(self) -> str:
        """A digest of the whole grid, and what is carried."""
        return f"{self._inner.hash(32)} {self._inner.carrying and self._inner.carrying.encode()}"

    def begin(self) -> None:
        """Gives a new bot the new room."""
        self._bot = self._advised = None
        if self._is_babyai:
            self._consult(None)

    def acted(self, action: int) -> None:
        """Lets the bot plan again after an action."""
        if self._is_babyai:
            self._consult(self._inner.actions(action))

    def expert(self, observation: Any) -> ExpertAction:
        """The bot's or the search's next action, with what is seen and the subgoal."""
        action, subgoal = self._planned() if not self._is_babyai else self._by_bot()
        thought = f"{subgoal}, so I do {action}"
        fields = (("seen", json.dumps(self.seen(observation))), ("thoughts", json.dumps(thought)))
        return ExpertAction(action, fields)

    def _consult(self, taken: Any) -> None:
        """Keeps the bot up to date. It was not written for every action that an agent may take:
        where it fails, a new one looks at the room as it is now."""
        for attempt in (taken, None):
            try:
                if self._bot is None or attempt is None:
                    bot = import_module("minigrid.utils.baby_ai_bot").BabyAIBot
                    self._bot, attempt = bot(self._environment), None
                self._advised = self._bot.replan(attempt)
            except Exception:
                self._advised = None
            else:
                return

    def _by_bot(self) -> tuple[str, str]:
        if self._advised is None:
            return self.actions[int(self._inner.actions.forward)], "I do not know what to do"
        subgoal = _subgoal(self._bot.stack[-1]) if self._bot.stack else "all is done"
        return self.actions[int(self._advised)], subgoal

    # Search, where the mission is to reach the goal.

    def _has_goal(self) -> bool:
        self._environment.reset(seed=0)
        return any(cell is not None and cell.type == "goal" for cell in self._inner.grid.grid)

    def _planned(self) -> tuple[str, str]:
        plan = _search(self._inner)
        if plan is None:
            return self.actions[int(self._inner.actions.left)], "I see no way"
        return plan.action, plan.subgoal


class _Plan(NamedTuple):
    action: str
    subgoal: str


class _Place(NamedTuple):
    """Where the agent is, and what has changed in the room."""

    x: int
    y: int
    direction: int
    key: str | None
    """Color of the key that it carries."""
    taken: frozenset[tuple[int, int]]
    opened: frozenset[tuple[int, int]]


def _search(inner: Any) -> _Plan | None:
    """The first step of a shortest way to a goal, through doors whose keys can be fetched."""
    carried = inner.carrying
    key = carried.color if carried is not None and carried.type == "key" else None
    x, y = (int(part) for part in inner.agent_pos)
    start = _Place(x, y, int(inner.agent_dir), key, frozenset(), frozenset())
    queue: deque[tuple[_Place, tuple[tuple[str, str], ...]]] = deque([(start, ())])
    seen = {start}
    while queue:
        place, path = queue.popleft()
        for action in MOVES:
            there, did = _moved(inner, place, action, hands_free=carried is None)
            if there is None or there in seen:
                continue
            seen.add(there)
            steps = (*path, (action, did))
            if did.startswith("go to"):
                subgoal = next(said for _, said in steps if said)
                return _Plan(steps[0][0], subgoal)
            queue.append((there, steps))
    return None


def _moved(
    inner: Any, place: _Place, action: str, *, hands_free: bool
) -> tuple[_Place | None, str]:
    """Where an action leads, and what it achieves; None: nowhere."""
    if action in ("left", "right"):
        turned = (place.direction + (1 if action == "right" else -1)) % 4
        return place._replace(direction=turned), ""
    ahead = (place.x + STEPS[place.direction][0], place.y + STEPS[place.direction][1])
    cell: Any = inner.grid.get(*ahead)
    kind: str | None = None if cell is None or ahead in place.taken else cell.type
    color: Any = None if cell is None else cell.color
    if action == "pickup":
        if kind != "key" or place.key is not None or not hands_free:
            return None, ""
        taken = place._replace(key=color, taken=place.taken | {ahead})
        return taken, f"pick up the {color} key"
    is_closed = kind == "door" and not getattr(cell, "is_open", True)
    is_closed = is_closed and ahead not in place.opened
    if action == "toggle":
        if not is_closed or (getattr(cell, "is_locked", False) and place.key != color):
            return None, ""
        return place._replace(opened=place.opened | {ahead}), f"open the {color} door"
    if kind in ("wall", "lava", "key", "ball", "box") or is_closed:
        return None, ""
    return place._replace(x=ahead[0], y=ahead[1]), "go to the goal" if kind == "goal" else ""


def _where(ahead: int, right: int) -> str:
    side = f"right {right}" if right > 0 else f"left {-right}" if right < 0 else ""
    return " ".join(part for part in (f"ahead {ahead}" if ahead else "", side) if part)


def _free(image: Any, x: int, y: int, step: tuple[int, int]) -> int:
    """Cells that one could walk in a direction, as far as one sees."""
    count = 0
    while True:
        x, y = x + step[0], y + step[1]
        if not (0 <= x < image.shape[0] and 0 <= y < image.shape[1]):
            return count
        kind, _, state = (int(part) for part in image[x, y])
        is_open_door = kind == DOOR and state == 0
        if kind not in (1, 3, 8) and not is_open_door:
            return count
        count += 1


def _subgoal(subgoal: Any) -> str:
    """One of the bot's subgoals in words."""
    name = type(subgoal).__name__.removesuffix("Subgoal")
    datum = getattr(subgoal, "datum", None)
    color, kind = getattr(datum, "color", None), getattr(datum, "type", None)
    thing = " ".join(part for part in (color, kind) if part)
    match name:
        case "GoNextTo":
            return f"go next to the {thing}" if thing else "go to a free cell"
        case "Explore":
            return "look around"
        case _:
            return f"{name.lower()} the {thing}" if thing else name.lower()
