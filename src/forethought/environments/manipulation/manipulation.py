"""Manipulation: an arm picks an object up, or places it near another."""

import hashlib
import json
import re
from typing import Literal

import numpy as np

from forethought.environments.contract import Ceiling, DataPolicy, ExpertAction, Transition
from forethought.environments.manipulation.camera import Camera
from forethought.environments.manipulation.scene import COLORS, OBJECTS, SHAPES
from forethought.environments.manipulation.script import (
    MAX_ROTATION,
    MAX_SHIFT,
    Decision,
    Goal,
    Script,
    turn_across,
)
from forethought.environments.manipulation.simulator import (
    HIGHEST,
    LOWEST,
    YAW,
    Looks,
    Placed,
    Simulator,
)
from forethought.environments.manipulation.thoughts import Seen, manipulation_facts, write_thought
from forethought.environments.parts import Episode, is_flag, require_option, require_whole_number
from forethought.types import Image, Metric, Observation, ThoughtFacts

DIMENSIONS, BINS = 8, 256
NAMES = tuple(f"b{number:03d}" for number in range(BINS))
"""Names of the bins, from the lowest value to the highest."""
ACTION = re.compile(r"(?:\s*b[0-9]{3}){8}\s*")

TaskName = Literal["pick", "place_near"]
View = Literal["image", "state"]
LIMITS: dict[TaskName, int] = {"pick": 40, "place_near": 80}
DATA_SKILL: dict[TaskName, float] = {"pick": 0.38, "place_near": 0.37}
"""Success of 40 %, that of the data behind Q-SFT's Table 3."""

LIFTED = 0.08
"""Meters above where it stood at which an object is picked up."""
NEAR, APART, CLEARANCE = 0.10, 0.16, 0.09
"""Meters between middles: near at the end, apart at the start, and between any two objects."""
REACH = np.array([[-0.15, -0.07], [0.15, 0.16]])
"""Where objects are put, meters: lowest and highest x and y."""
SAMPLED = 31
"""Actions that `legal_actions` draws."""


class Manipulation:
    """A robot arm with seven joints and a gripper, seen by a camera, moves small objects.

    Description: MuJoCo. On the table lie three objects of different colors, of ten shapes and ten
    colors; there are a tray and a drawer beside them. Q-SFT (Hong et al. 2024), section 5.1, after
    Singh et al. 2020 (COG); the scene is our own.

    Observation: the camera's image, uint8 [image_size, image_size, 3], and the instruction in
    words; with `proprioception` the gripper's place, yaw and opening as bins, "gripper
    b127b120b140b127b255".

    Actions: eight bins of 256, "b127b127b255b127b127b127b000b000" (blanks between them do not
    count): the shift of the gripper along x, y and z, from -5 to 5 cm; its turn about x, y and z,
    from -0.3 to 0.3 radians; the gripper, from open to closed; and whether to end the episode, from
    bin 128 on. As there are 256^8 of them, `legal_actions` is a sample: 31 draws of bins,
    without an end of the episode, and the scripted policy's action. One action takes 40 ms.

    Rewards: 1 at success, else 0.

    Start: shapes, colors (all different), places and turns are drawn; with `randomize` also the
    colors of table and floor, the light, the camera's place, and how far the drawer is open.

    End: terminated at success, or where the agent ends the episode; truncated after `limit_steps`.

    Success: pick: the object is 8 cm above its start. place_near: it rests on the table within
    10 cm of the other one, middle to middle, and the gripper has let it go; they start at
    least 16 cm apart.

    Ceiling: estimated, by the scripted policy, which knows all positions.

    Data policy: the script with errors: where it sees the object is off by a normal error with
    (1 - skill) 5 cm, every shift by one with (1 - skill) 1 cm, and it does not see whether it holds
    the object; at its end it ends the episode. It says where it sees things.

    Failure: a position or velocity that is no number is a crash, never a reward.

    Arguments:
        task: pick or place_near.
        image_size: side of the image, 48 to 1024 pixels.
        limit_steps: 10 to 200; None: 40 (pick) or 80 (place_near).
        view: image, or state: what a camera would have to tell.
        proprioception: whether the gripper's state is told, beside an image; a state holds it.
        randomize: domain randomization.

    Version history:
        v0: first version.
    """

    def __init__(
        self,
        task: TaskName = "pick",
        image_size: int = 300,
        limit_steps: int | None = None,
        view: View = "image",
        proprioception: bool = True,
        randomize: bool = False,
    ) -> None:
        require_option(task in LIMITS, "task", task, "pick or place_near")
        require_whole_number("image_size", image_size, 48, 1024)
        if limit_steps is not None:
            require_whole_number("limit_steps", limit_steps, 10, 200)
        require_option(view in ("image", "state"), "view", view, "image or state")
        require_option(is_flag(proprioception), "proprioception", proprioception, "True or False")
        require_option(is_flag(randomize), "randomize", randomize, "True or False")
        self._view: View = view
        self._task: TaskName = task
        self._is_told = proprioception or view == "state"
        self._is_randomized = randomize
        self._episode = Episode(limit_steps or LIMITS[task])
        self._simulator = Simulator(image_size)
        self._size = image_size
        self._camera = Camera(self._simulator.model, image_size) if view == "image" else None
        self._goal = Goal(0, "cube", None)
        self._objects: tuple[Placed, ...] = ()
        self._looks = Looks()
        self._seed, self._not_actions, self._gave_up, self._is_done = 0, 0, False, False
        self._shown: Observation | None = None

    @property
    def actions(self) -> None:
        """There are 256^8."""
        return

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return NAMES

    @property
    def ceiling(self) -> Ceiling:
        return Ceiling(1.0, "estimated: the scripted policy, rounded up")

    @property
    def data_skill(self) -> float:
        return DATA_SKILL[self._task]

    def reset(self, seed: int) -> Observation:
        randomness = np.random.default_rng(seed)
        self._seed = seed
        self._objects = _objects(randomness, APART if self._task == "place_near" else CLEARANCE)
        self._looks = _looks(randomness) if self._is_randomized else Looks()
        near = 1 if self._task == "place_near" else None
        self._goal = Goal(0, self._objects[0].shape, near)
        self._simulator.reset(self._objects, self._looks)
        self._not_actions, self._gave_up, self._is_done = 0, False, False
        self._shown = None
        self._episode.begin()
        return self.observation()

    def observation(self) -> Observation:
        if self._shown is None:
            image = None
            if self._view == "image":
                assert self._camera is not None
                image = self._camera.draw(self._simulator.data)
            self._shown = Observation(
                text=self._told() if self._is_told else None,
                image=image,
                admissible_actions=None,
                state_key=self._key(),
                goal=self._instruction(),
                task_type="Pick" if self._task == "pick" else "Place near",
            )
        return self._shown

    def step(self, action: str) -> Transition:
        """As the contract has it.

        Raises:
            CrashedSimulationError: the state is not finite any more.
        """
        self._episode.require_open()
        bins = parse_bins(action)
        if bins is None:
            self._not_actions += 1
            return self._episode.record(0.0, terminated=False)
        values = np.array(bins) / (BINS - 1) * 2 - 1
        self._gave_up = bins[7] >= BINS // 2
        if not self._gave_up:
            shift, turn = values[:3] * MAX_SHIFT, values[3:6] * MAX_ROTATION
            self._simulator.move(shift, turn, float(1 - values[6]) / 2)
            self._is_done = self._reached()
            self._shown = None
        return self._episode.record(float(self._is_done), terminated=self._is_done or self._gave_up)

    def legal_actions(self) -> tuple[str, ...]:
        """A sample, drawn by seed and step, and the scripted policy's action."""
        if self._episode.is_over:
            return ()
        randomness = np.random.default_rng([self._seed, self._episode.steps])
        drawn = randomness.integers(BINS, size=(SAMPLED, DIMENSIONS))
        drawn[:, 7] //= 2
        sample = ["".join([NAMES[number] for number in row]) for row in drawn.tolist()]
        return (*sample, to_action(Script().decide(self._simulator, self._goal)))

    def expert(self) -> ExpertAction:
        self._episode.require_open()
        decision = Script().decide(self._simulator, self._goal)
        thought = write_thought(self._seen(), decision.why)
        return ExpertAction(to_action(decision), (("thoughts", json.dumps(thought)),))

    def thought_facts(self, response: str) -> ThoughtFacts:
        """Where the objects are said to be, and why the next action is taken."""
        reason = Script().decide(self._simulator, self._goal).why
        return manipulation_facts(response, seen=self._seen(), reason=reason)

    def data_policy(self, skill: float, randomness: np.random.Generator) -> DataPolicy:
        require_option(0 <= skill <= 1, "skill", skill, "0 (careless) to 1 (no errors)")
        error = 1 - skill
        aim = randomness.normal(0.0, 0.05 * error, 2)
        script = Script(aim=aim)

        def answer() -> ExpertAction:
            decision = script.decide(self._simulator, self._goal)
            noise = randomness.normal(0.0, 0.01 * error / MAX_SHIFT, 3)
            shift = np.clip(decision.shift + noise, -1.0, 1.0)
            wanted, *others = self._seen()
            wanted = wanted._replace(at=wanted.at + np.append(aim, 0.0))
            thought = write_thought((wanted, *others), decision.why)
            action = to_action(decision._replace(shift=shift))
            return ExpertAction(action, (("thoughts", json.dumps(thought)),))

        return answer

    def success(self) -> bool:
        return self._is_done

    def metrics(self) -> tuple[Metric, ...]:
        """How far it is (0.5: the object is held), texts that were no action, and whether the
        agent ended the episode."""
        held = 0.5 * self._simulator.holds(0)
        return (
            Metric("progress", 1.0 if self._is_done else held),
            Metric("not_actions", float(self._not_actions)),
            Metric("gave_up", float(self._gave_up)),
        )

    def render(self) -> Image:
        """The camera's image, whatever the agent sees."""
        if self._camera is None:
            self._camera = Camera(self._simulator.model, self._size)
        return self._camera.draw(self._simulator.data)

    def close(self) -> None:
        """The renderer is the process's, not the episode's."""

    def _reached(self) -> bool:
        at = self._simulator.object_at(0)
        rest = SHAPES[self._goal.shape].rest
        if self._goal.near is None:
            return bool(at[2] > rest + LIFTED)
        apart = float(np.hypot(*(at - self._simulator.object_at(self._goal.near))[:2]))
        is_low = bool(at[2] < rest + 0.02)
        is_resting = is_low and self._simulator.object_speed(0) < 0.05
        return is_resting and apart < NEAR and not self._simulator.holds(0)

    def _seen(self) -> tuple[Seen, ...]:
        return tuple(
            Seen(one.color, self._simulator.object_at(number))
            for number, one in enumerate(self._objects)
        )

    def _name(self, number: int) -> str:
        return f"{self._objects[number].color} {self._objects[number].shape}"

    def _instruction(self) -> str:
        if self._goal.near is None:
            return f"pick up the {self._name(0)}"
        return f"put the {self._name(0)} near the {self._name(self._goal.near)}"

    def _told(self) -> str:
        """The gripper's place, yaw and opening; in a state also the way to each object."""
        simulator = self._simulator
        rest = np.array([simulator.yaw / YAW, simulator.opening * 2 - 1])
        place = _scaled(simulator.grip, LOWEST, HIGHEST)
        lines = ["gripper: " + "".join(map(_bin, np.concatenate([place, rest])))]
        if self._view == "state":
            for number, one in enumerate(self._objects):
                way = (simulator.object_at(number) - simulator.grip) / MAX_SHIFT
                turn = turn_across(simulator, number, one.shape) / MAX_ROTATION
                lines.append(f"{self._name(number)}: {''.join(map(_bin, (*way, turn)))}")
        return "\n".join(lines)

    def _key(self) -> str:
        """A digest of the state."""
        told = repr((self._objects, self._looks, self._task)).encode()
        return hashlib.sha256(told + self._simulator.digest()).hexdigest()[:32]


def parse_bins(action: str) -> tuple[int, ...] | None:
    """The eight bins that a text names, each 0 to 255; None: it names none."""
    if len(action) > 100 or ACTION.fullmatch(action) is None:
        return None
    bins = tuple(int(number) for number in re.findall(r"[0-9]{3}", action))
    return bins if max(bins) < BINS else None


def to_action(decision: Decision) -> str:
    """A decision in bins."""
    x, y, z = decision.shift
    closes, ends = (1.0 if flag else -1.0 for flag in (decision.closes, decision.gives_up))
    return "".join(map(_bin, (x, y, z, 0.0, 0.0, decision.yaw, closes, ends)))


def _bin(value: float) -> str:
    """The bin of a number from -1 to 1."""
    return NAMES[round((min(max(value, -1.0), 1.0) + 1) / 2 * (BINS - 1))]


def _scaled(place: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return 2 * (place - low) / (high - low) - 1


def _objects(randomness: np.random.Generator, apart: float) -> tuple[Placed, ...]:
    """Objects of different colors; the first two this far apart, no two in each other's way."""
    shapes = randomness.choice(list(SHAPES), size=OBJECTS)
    colors = randomness.choice(list(COLORS), size=OBJECTS, replace=False)
    while True:
        places = randomness.uniform(REACH[0], REACH[1], size=(OBJECTS, 2))
        gaps = [float(np.hypot(*(places[i] - places[j]))) for i, j in ((0, 1), (0, 2), (1, 2))]
        if gaps[0] > apart and min(gaps) > CLEARANCE:
            break
    turns = randomness.uniform(-1.4, 1.4, size=OBJECTS)
    rows = zip(shapes.tolist(), colors.tolist(), places.tolist(), turns.tolist(), strict=True)
    return tuple(Placed(shape, color, x, y, yaw) for shape, color, (x, y), yaw in rows)


def _looks(randomness: np.random.Generator) -> Looks:
    """A scene of other colors, light and view."""
    table, floor = randomness.uniform(0.35, 0.85, size=(2, 3)).tolist()
    return Looks(
        table=tuple(table),
        floor=tuple(floor),
        light=float(randomness.uniform(0.6, 1.3)),
        shift=tuple(randomness.uniform(-0.02, 0.02, size=3).tolist()),
        drawer=float(randomness.uniform(0.0, 0.07)),
    )
