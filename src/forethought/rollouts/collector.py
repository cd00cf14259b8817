"""How steps are gathered: every slot plays at its own pace.

Each slot holds one environment. While some slots wait for the model, others wait for
their environment; nobody waits for the slowest. What is gathered does not depend on
timing: a slot's episodes, and the random numbers of each answer, are fixed beforehand.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from forethought.configs.parts import OnInvalid, SamplingConfig
from forethought.environments.contract import Prompter, Transition
from forethought.environments.vector import Act, Failed, Observed, Replay, Reset, Runner
from forethought.errors import EnvironmentUnusableError, PolicyError
from forethought.generation.contract import GenerationRequest, GenerationResult, Policy
from forethought.prompts.history import past_step, with_history
from forethought.rollouts.seeding import Split, completion_seed, draw_action, episode_seed
from forethought.rollouts.slot import (
    Asked,
    Collected,
    Cursor,
    Episode,
    FixedSteps,
    FromStarts,
    OneEpisode,
    Plan,
    Slot,
    Start,
    given_up,
    played,
    taken_step,
)
from forethought.types import Observation, Prompt, Trajectory

MAX_FAILURES = 3
"""Episodes in a row that one slot may give up before the run stops."""


class Collector:
    """Plays one policy in the slots of a runner."""

    def __init__(
        self,
        *,
        environment_id: str,
        runner: Runner,
        policy: Policy,
        prompter: Prompter,
        sampling: SamplingConfig,
        split: Split,
        run_seed: int,
        on_invalid: OnInvalid = "penalize",
        bootstraps: bool = False,
        group_size: int = 1,
        first_slot: int = 0,
        total_slots: int | None = None,
        on_step: Callable[[], object] | None = None,
        on_episode: Callable[[], object] | None = None,
    ) -> None:
        """
        Args:
            on_invalid: random: a uniformly drawn action (RL4VLM, Eq. 4.1); penalize: whatever the
                environment does about an action that it does not know.
            bootstraps: ask the critic for the value of every state that follows a
                trajectory's last step without being terminal.
            group_size: consecutive episodes that start from one seed; their answers are drawn
                apart.
            first_slot: number of this runner's first slot among those of all processes.
            total_slots: slots of all processes; by default, of this runner.
            on_step: called after every step, for a progress bar.
            on_episode: called after every episode that ended or was given up, likewise.
        """
        self._environment_id = environment_id
        self._runner = runner
        self._policy = policy
        self._prompter = with_history(prompter)
        self._sampling = sampling
        self._on_invalid = on_invalid
        self._split = split
        self._run_seed = run_seed
        self._bootstraps = bootstraps
        self._group_size = group_size
        self._total_slots = total_slots or runner.slots
        self._on_step = on_step or (lambda: None)
        self._on_episode = on_episode or (lambda: None)
        numbers = range(first_slot, first_slot + runner.slots)
        self._slots = [Slot(i, number - self._total_slots) for i, number in enumerate(numbers)]
        self._awaiting_value: dict[int, tuple[Slot, int]] = {}
        self._asked_of_environment = 0
        self._asked_of_policy = 0

    def collect_steps(self, steps_per_slot: int) -> Collected:
        """Exactly so many steps from every slot; unfinished episodes go on next time."""
        return self._run(FixedSteps(steps_per_slot, self._total_slots))

    def collect_round(self) -> Collected:
        """One whole episode from every slot; slots that end early wait for the others.

        An episode that is given up is not made up for. Slots i·group_size and the following
        play one group; where episodes go on from an earlier collection, there is none.
        """
        return self._run(OneEpisode(self._total_slots))

    def collect_episodes(self, episodes: Iterable[int]) -> Collected:
        """These episodes of the split, whole, in the given order."""
        order = list(episodes)
        collected = self._run(FromStarts([Start(index) for index in order]))
        rank = {self._seed_of(index): n for n, index in enumerate(order)}
        position = {index: n for n, index in enumerate(order)}
        return Collected(
            sorted(collected.trajectories, key=lambda trajectory: rank[trajectory.seed]),
            sorted(collected.episodes, key=lambda episode: position[episode.number]),
        )

    def collect_from(
        self, starts: Sequence[Start], *, horizon: int | None = None
    ) -> list[Trajectory]:
        """One trajectory from each of these starts, in their order: to the end of its episode,
        or for `horizon` steps at most.

        For a collector of its own beside one that plays whole rounds on the same runner:
        what its slots play decides what they would play next.
        """
        self._run(FromStarts(list(starts), horizon))
        by_number = {
            number: trajectory
            for slot in self._slots
            for number, trajectory in zip(slot.numbers, slot.trajectories, strict=True)
        }
        return [by_number[start.number] for start in starts]

    def cursors(self) -> list[Cursor]:
        """Where every slot stands, for a checkpoint. Between collections only."""
        return [Cursor(s.episode, tuple(s.actions), s.total_reward) for s in self._slots]

    def restore(self, cursors: Sequence[Cursor]) -> None:
        """Brings every slot back to where it stood, by replaying its actions.

        Raises:
            EnvironmentUnusableError: an environment crashes or hangs meanwhile.
        """
        for slot, cursor in zip(self._slots, cursors, strict=True):
            slot.episode, slot.total_reward = cursor.episode, cursor.total_reward
            slot.seed, slot.ahead = self._seed_of(cursor.episode), list(cursor.actions)
            if slot.ahead:
                self._tell(slot, Reset(slot.seed))
        while self._asked_of_environment:
            for reply in self._receive():
                if isinstance(reply, Failed):
                    raise EnvironmentUnusableError(
                        f"{self._environment_id}: slot {reply.slot} cannot be brought back to "
                        f"where it stood: {reply.failure}: {reply.message}"
                    )
                self._walk(self._slots[reply.slot], reply)

    # --- the loop ------------------------------------------------------------------------

    def _run(self, plan: Plan) -> Collected:
        for slot in self._slots:
            slot.taken, slot.trajectories, slot.numbers, slot.episodes = 0, [], [], []
            if slot.observation is None:
                self._begin(slot, plan)
            else:
                self._ask(slot)
        while self._asked_of_environment or self._asked_of_policy:
            if self._asked_of_environment:
                for reply in self._receive():
                    self._on_reply(self._slots[reply.slot], reply, plan)
            if self._asked_of_policy:
                for result in self._policy.advance():
                    self._asked_of_policy -= 1
                    self._on_completion(result)
        return Collected(
            [trajectory for slot in self._slots for trajectory in slot.trajectories],
            [episode for slot in self._slots for episode in slot.episodes],
        )

    def _begin(self, slot: Slot, plan: Plan) -> None:
        following = None if plan.is_enough(slot) else plan.next_start(slot)
        slot.observation, slot.asked = None, None
        slot.was_retried = slot.is_replaying = False
        slot.actions, slot.past, slot.ahead, slot.total_reward = [], [], [], 0.0
        if following is not None:
            slot.episode, seed, actions = following
            slot.seed = self._seed_of(slot.episode) if seed is None else seed
            slot.ahead = list(actions)
            self._tell(slot, Reset(slot.seed))

    def _walk(self, slot: Slot, reply: Observed) -> bool:
        """Repeats one more of the actions that lead to the slot's start; False: it is there."""
        if reply.transition is not None:
            self._remember(slot, slot.ahead.pop(0))
        slot.see(reply)
        if slot.ahead:
            self._tell(slot, Act(slot.ahead[0]))
        return bool(slot.ahead)

    def _remember(self, slot: Slot, action: str) -> None:
        assert slot.observation is not None
        choices = slot.observation.admissible_actions or self._runner.actions
        slot.actions.append(action)
        slot.past.append(past_step(slot.observation, action, choices))

    def _ask(self, slot: Slot) -> None:
        assert slot.observation is not None
        slot.prompt = self._prompt(slot, slot.observation)
        # What the prompt does not list is open to any text, and yet not all of it is legal.
        listed = slot.observation.admissible_actions or self._runner.actions
        held = (listed or slot.legal_actions or None) if self._sampling.constrain_actions else None
        self._request(slot.index, slot, slot.prompt, self._sampling.max_new_tokens, held)

    def _prompt(self, slot: Slot, observation: Observation) -> Prompt:
        messages = self._prompter.messages(observation, slot.past)
        try:
            return self._policy.prompt(messages)
        except PolicyError as error:  # What the model cannot read, the environment wrote.
            place = f"{self._environment_id}, episode {slot.episode}, step {len(slot.actions)}"
            raise type(error)(f"{place}: {error}") from error

    def _request(
        self,
        key: int,
        slot: Slot,
        prompt: Prompt,
        tokens: int,
        choices: tuple[str, ...] | None = None,
    ) -> None:
        self._asked_of_policy += 1
        seed, temperature = self._completion_seed(slot), self._sampling.temperature
        self._policy.submit(GenerationRequest(key, prompt, seed, tokens, temperature, choices))

    def _on_completion(self, result: GenerationResult) -> None:
        if result.key in self._awaiting_value:
            slot, position = self._awaiting_value.pop(result.key)
            unfinished = slot.trajectories[position]
            slot.trajectories[position] = replace(unfinished, bootstrap_value=result.value)
            return
        slot = self._slots[result.key]
        assert slot.observation is not None
        assert slot.prompt is not None
        choices = slot.observation.admissible_actions or self._runner.actions
        parsed = self._prompter.parse(result.completion, choices)
        if not parsed.is_valid and choices and self._on_invalid == "random":
            drawn = draw_action(self._completion_seed(slot), len(choices))
            parsed = replace(parsed, action=choices[drawn], was_randomized=True)
        state_key = self._prompter.state_key(slot.observation, slot.past)
        slot.asked = Asked(slot.prompt, result, parsed, state_key, self._prompter.response_fields)
        self._tell(slot, slot.asked.act)

    def _on_reply(self, slot: Slot, reply: Observed | Failed, plan: Plan) -> None:
        if isinstance(reply, Failed):
            self._on_failure(slot, reply, plan)
        elif slot.is_replaying:
            slot.is_replaying = False
            slot.see(reply)
            if slot.asked is not None:
                self._tell(slot, slot.asked.act)  # what had failed, once more
            elif slot.ahead:
                self._tell(slot, Act(slot.ahead[0]))
            else:
                self._ask(slot)
        elif slot.ahead:
            if not self._walk(slot, reply):
                self._ask(slot)
        elif reply.transition is None:
            slot.see(reply)
            self._ask(slot)
        else:
            self._on_transition(slot, reply, reply.transition, plan)

    def _on_transition(self, slot: Slot, reply: Observed, what: Transition, plan: Plan) -> None:
        assert slot.asked is not None
        action = slot.asked.action.action
        wrote = slot.asked.result.version
        version = self._policy.version if wrote is None else wrote
        slot.steps.append(taken_step(slot.asked, reply, what, version))
        slot.asked = None
        self._remember(slot, action)
        slot.total_reward += what.reward
        slot.taken += 1
        self._on_step()
        ended = what.terminated or what.truncated
        if ended:
            slot.failures = 0
            steps = len(slot.actions)
            slot.episodes.append(Episode(slot.episode, slot.total_reward, steps, reply.success))
            self._on_episode()
        is_left = ended or plan.is_far_enough(slot)
        if is_left or plan.is_enough(slot):
            self._close_trajectory(slot, reply, is_terminal=what.terminated, has_ended=ended)
        slot.see(reply)
        if is_left:
            self._begin(slot, plan)
        elif not plan.is_enough(slot):
            self._ask(slot)

    def _close_trajectory(
        self, slot: Slot, reply: Observed, *, is_terminal: bool, has_ended: bool
    ) -> None:
        if not is_terminal and self._bootstraps:
            key = -1 - len(slot.trajectories) - slot.index * (1 << 20)
            self._awaiting_value[key] = (slot, len(slot.trajectories))
            self._request(key, slot, self._prompt(slot, reply.observation), 0)
        slot.numbers.append(slot.episode)
        slot.trajectories.append(played(slot, reply, self._environment_id, has_ended=has_ended))
        slot.steps = []

    def _on_failure(self, slot: Slot, failed: Failed, plan: Plan) -> None:
        """A fresh instance gets one try at the same place; then the episode is given up.

        Its steps are dropped, not trained on as if the environment had paid nothing.
        """
        if not slot.was_retried:
            slot.was_retried = slot.is_replaying = True
            self._tell(slot, Replay(slot.seed, tuple(slot.actions)))
            return
        slot.failures += 1
        if slot.failures > MAX_FAILURES:
            raise EnvironmentUnusableError(
                f"{self._environment_id}: {slot.failures} episodes in a row could not be played in "
                f"slot {slot.index}; the last one: {failed.failure}: {failed.message}"
            )
        slot.taken -= len(slot.steps)
        slot.steps = []
        slot.numbers.append(slot.episode)
        slot.trajectories.append(given_up(slot, self._environment_id, failed.failure))
        self._on_episode()
        self._begin(slot, plan)

    # --- the environment's side ------------------------------------------------------------------

    def _completion_seed(self, slot: Slot) -> int:
        return completion_seed(self._run_seed, slot.episode, len(slot.actions))

    def _seed_of(self, episode: int) -> int:
        return episode_seed(self._split, self._run_seed, episode // self._group_size)

    def _tell(self, slot: Slot, command: Reset | Act | Replay) -> None:
        self._asked_of_environment += 1
        self._runner.send(slot.index, command)

    def _receive(self) -> Sequence[Observed | Failed]:
        replies = self._runner.receive()
        self._asked_of_environment -= len(replies)
        return replies
