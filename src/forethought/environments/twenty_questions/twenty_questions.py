"""20 Questions: find a hidden object by questions that are answered with Yes or No."""

import json
from functools import cache, lru_cache
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from forethought.environments.contract import Ceiling, DataPolicy, ExpertAction, Transition
from forethought.environments.parts import Episode, Turn, require_option, write_transcript
from forethought.environments.twenty_questions.questions import (
    bare_words,
    load_things,
    names,
    sentences,
    truth_table,
    understand,
)
from forethought.types import Metric, Observation

MAX_QUESTIONS = 20
FEW = 3
"""Up to so many objects one is guessed: a guess splits three as well as a question, and may win."""

Candidates = NDArray[np.int64]
"""Numbers of the objects of which all answers so far are true, ascending."""


@cache
def all_candidates() -> Candidates:
    """Every object; not to be written."""
    everything = np.arange(len(load_things()))
    everything.flags.writeable = False
    return everything


def good_questions(candidates: Candidates, count: int) -> tuple[int, ...]:
    """Numbers of the questions (`grammar.sentences`) that are the most informative, best first.

    The attributes that split the candidates most evenly, `count` at most, of equally even
    ones the first; of at most three candidates, or of some in which no attribute differs, a
    guess of each. The expert asks the first.

    Args:
        candidates: at least one.
    """
    return _good_questions(candidates.tobytes(), count)


@lru_cache(maxsize=1 << 16)
def _good_questions(key: bytes, count: int) -> tuple[int, ...]:
    candidates = np.frombuffer(key, np.int64)
    true = truth_table()[candidates].sum(axis=0)
    smaller = np.minimum(true, len(candidates) - true)
    order = np.argsort(-smaller, kind="stable")[:count]
    splits = tuple(int(attribute) for attribute in order if smaller[attribute] > 0)
    guesses = tuple(truth_table().shape[1] + int(thing) for thing in candidates)
    return splits if splits and len(candidates) > FEW else guesses


def remaining(candidates: Candidates, question: int, answer: bool) -> Candidates:
    """The candidates of which this answer is true."""
    table = truth_table()
    attributes = table.shape[1]
    if question < attributes:
        return candidates[table[candidates, question] == answer]
    return candidates[(candidates == question - attributes) == answer]


class ExpertResult(NamedTuple):
    """Over all hidden objects, each as likely as the others."""

    success_rate: float
    mean_return: float


@cache
def expert_result() -> ExpertResult:
    """The expert's success rate and mean return, exact: every hidden object is played."""
    attributes = truth_table().shape[1]
    total = len(load_things())
    wins = wrong = 0
    level = [all_candidates()]
    for _ in range(MAX_QUESTIONS):
        following: list[Candidates] = []
        for candidates in level:
            question = good_questions(candidates, 1)[0]
            is_guess = question >= attributes
            wins += is_guess
            wrong += len(candidates) - is_guess
            parts = [remaining(candidates, question, answer) for answer in (False, True)]
            following += [part for part in parts[: 1 if is_guess else 2] if len(part)]
        level = following
    return ExpertResult(wins / total, -wrong / total)


@cache
def return_bound() -> float:
    """A mean return that no policy exceeds, whatever the attributes are.

    F(n), the fewest wrong guesses and questions summed over n objects, one of them hidden:

        F(1) = 0,   F(n) = min(n - 1 + F(n - 1), n + min over k of F(k) + F(n - k))

    a guess, which is right for one of them, or a question, which splits them in two.
    """
    fewest = [0, 0]
    for n in range(2, len(load_things()) + 1):
        split = min(fewest[k] + fewest[n - k] for k in range(1, n // 2 + 1))
        fewest.append(min(n - 1 + fewest[n - 1], n + split))
    return -fewest[-1] / (len(fewest) - 1)


Wordings = Literal["sentences", "words"]
Replies = Literal["answers", "facts"]

YES, NO, NOT_UNDERSTOOD = "Yes.", "No.", "I don't understand."

_LEGENDS: dict[Replies, str] = {
    "answers": "Yes or No.",
    "facts": "Yes, METAL, or No, metal.",
}

DATA_SKILL = 0.348
"""Mean return -17.3, that of the data of Q-SFT's Table 2."""

DATA_CHOICES = 5
"""Even splits among which an informed question of the data policy is drawn."""


class TwentyQuestions:
    """Find a hidden object by at most 20 questions that are answered with Yes or No.

    Description: 158 objects of 17 categories, those of LMRL-Gym. An oracle answers from a
    table of objects and attributes, written by hand (`attributes.txt`), in the everyday
    sense of the words. Q-SFT, section 5.

    Observation: the questions so far and their answers, two lines each, empty at the start:
    "> Is it alive?", "No.".

    Actions: any text. Understood are the questions that `questions.py` can read: each
    attribute in several wordings, and guesses ("Is it a cat?"). Gymnasium's actions are the
    numbers of the questions in their usual wording, attributes first. Legal are the questions
    that were not asked yet: an answer heard twice costs as much and adds nothing.

    Rewards: 0 for the right guess, -1 for anything else. "I don't understand." costs as
    much as an answer.

    Start: the hidden object is uniform over the 158.

    End: terminated with the right guess or the 20th question: the limit is a rule of the
    game, and how many questions are left can be seen.

    Success: the object was guessed.

    Ceiling: 100 %, exact: the expert finds every object. The best mean return is not known;
    it lies between the expert's, which is exact (every object is played), and a bound on
    what any questions could do, both of them named in `ceiling`. The expert asks for the
    attribute that splits the remaining objects most evenly, and guesses once three are left.

    Data policy: with probability `skill` an informed question, uniformly one of the five
    that split the remaining objects most evenly, or a guess once three are left; else any
    question of the list. Each in a wording drawn from all of its wordings.

    Arguments:
        wordings: "sentences", each question in several, or "words", each in one, as short as
            can be: "metal?", "cat?". Either is understood.
        replies: "answers", "Yes." and "No.", or "facts", the name of what was asked, in capitals
            for Yes: "METAL", "cat".

    Version history:
        v0: first version.
    """

    is_transcript = True

    def __init__(
        self,
        wordings: Wordings = "sentences",
        replies: Replies = "answers",
    ) -> None:
        require_option(wordings in get_args(Wordings), "wordings", wordings, "sentences or words")
        require_option(replies in get_args(Replies), "replies", replies, "answers or facts")
        self.wordings: Wordings = wordings
        self.replies: Replies = replies
        self._things = load_things()
        self._attributes = truth_table().shape[1]
        self._wordings = (
            sentences() if wordings == "sentences" else tuple((bare,) for bare in bare_words())
        )
        self._usual = tuple(ways[0] for ways in self._wordings)
        self._everything = range(len(self._usual))
        self._episode = Episode(MAX_QUESTIONS)
        self._hidden = 0
        self._turns: list[Turn] = []
        self._asked: set[int] = set()
        self._candidates = all_candidates()
        self._is_found = False
        self._not_understood = 0

    @property
    def actions(self) -> None:
        """None: questions are open text."""
        return None

    @property
    def ceiling(self) -> Ceiling:
        """The expert's success rate, computed over all objects."""
        result = expert_result()
        return Ceiling(
            result.success_rate,
            "exact: the expert, played on every hidden object; its mean return is "
            f"{result.mean_return:.3f}, no policy's is above {return_bound():.3f}",
        )

    @property
    def data_skill(self) -> float:
        """How often the data policy asks a good question."""
        return DATA_SKILL

    def reset(self, seed: int) -> Observation:
        """Draws the hidden object from the seed."""
        self.np_random = np.random.default_rng(seed)
        self._draw()
        return self.observation()

    def observation(self) -> Observation:
        """The questions so far and what was said to each, as a transcript."""
        text = self._text()
        return Observation(
            text=text,
            image=None,
            admissible_actions=None,
            state_key=text or "start",
            goal=f"Find the hidden object: ask 20 questions for {_LEGENDS[self.replies]} "
            f"Guess: {'Is it a cat?' if self.wordings == 'sentences' else 'cat?'}",
            task_type="TwentyQuestions",
        )

    def step(self, action: str) -> Transition:
        """Asks a question or guesses; costs 1 unless the guess is right.

        Raises:
            RuntimeError: the episode is over.
        """
        self._episode.require_open()
        number = understand(action)
        if number is None:
            self._not_understood += 1
            oracle = NOT_UNDERSTOOD
        else:
            is_true = len(remaining(np.array([self._hidden]), number, True)) > 0
            oracle = self._oracle(number, is_true)
            self._candidates = remaining(self._candidates, number, is_true)
            self._asked.add(number)
            self._is_found = is_true and number >= self._attributes
        self._turns.append(Turn(action, oracle))
        return self._episode.record(
            0.0 if self._is_found else -1.0,
            terminated=self._is_found or self._episode.is_last_step,
        )

    def legal_actions(self) -> tuple[str, ...]:
        """Questions and guesses that were not tried yet; none once the episode is over."""
        if self._episode.is_over:
            return ()
        return tuple(way for n, way in enumerate(self._usual) if n not in self._asked)

    def expert(self) -> ExpertAction:
        """A question that halves the candidates best."""
        self._episode.require_open()
        question = good_questions(self._candidates, 1)[0]
        left = len(self._candidates)
        thought = f"{left} objects are left, " + (
            "I guess" if question >= self._attributes else "I ask what splits them evenly"
        )
        if left == 1:
            thought = f"only {self._things[self._candidates[0]].guesses[0]} is left"
        return ExpertAction(self._usual[question], (("thoughts", json.dumps(thought)),))

    def data_policy(self, skill: float, randomness: np.random.Generator) -> DataPolicy:
        """Good questions with probability `skill`, else any question or guess.

        Raises:
            ConfigError: a skill beyond 0 to 1.
        """
        require_option(0 <= skill <= 1, "skill", skill, "0 (random) to 1 (always informed)")

        def act() -> ExpertAction:
            pool = self._everything
            if randomness.random() < skill:
                pool = good_questions(self._candidates, DATA_CHOICES)
            ways = self._wordings[pool[int(randomness.integers(len(pool)))]]
            return ExpertAction(ways[int(randomness.integers(len(ways)))], ())

        return act

    def success(self) -> bool:
        """Whether the object was guessed."""
        return self._is_found

    def metrics(self) -> tuple[Metric, ...]:
        """How many texts were not understood, and how many were repeated."""
        repeated = len(self._turns) - self._not_understood - len(self._asked)
        return (
            Metric("not_understood", float(self._not_understood)),
            Metric("repeated", float(repeated)),
        )

    def close(self) -> None:
        """Nothing is held open."""

    def _text(self) -> str:
        return write_transcript(self._turns)

    def _oracle(self, number: int, is_true: bool) -> str:
        if self.replies == "answers":
            return YES if is_true else NO
        name = names()[number]
        return name.upper() if is_true else name.lower()

    def _draw(self) -> None:
        self._hidden = int(self.np_random.integers(len(self._things)))
        self._turns = []
        self._asked = set()
        self._candidates = all_candidates()
        self._is_found = False
        self._not_understood = 0
        self._episode.begin()
