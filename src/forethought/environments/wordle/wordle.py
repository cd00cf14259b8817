"""Wordle: find a hidden word of five letters in six guesses."""

import json
from functools import cache, lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forethought.environments.contract import Ceiling, DataPolicy, ExpertAction, Transition
from forethought.environments.parts import Episode, Turn, require_option, write_transcript
from forethought.environments.wordle.marks import (
    ALL_IN_PLACE,
    CODES,
    LETTERS,
    Rules,
    WordList,
    known,
    load_words,
    mark_table,
    shown,
    spelled,
)
from forethought.types import Metric, Observation

MAX_GUESSES = 6

Candidates = NDArray[np.int64]
"""Numbers of the words that agree with all marks so far, ascending."""


@cache
def all_candidates(words: WordList) -> Candidates:
    """Every word of the list; not to be written."""
    everything = np.arange(len(load_words(words)))
    everything.flags.writeable = False
    return everything


def consistent(
    candidates: Candidates, guess: int, code: int, words: WordList, rules: Rules
) -> Candidates:
    """Those that would have given the guess these marks."""
    return candidates[mark_table(words, rules)[guess, candidates] == code]


def best_guess(candidates: Candidates, words: WordList, rules: Rules) -> int:
    """The word with the most informative marks, every candidate being equally likely.

        argmax over guesses g of H(g) = -Σ_m p(m | g) log p(m | g)

    Of equally informative words a candidate first, then the first of the list. Of at
    most two candidates, the first.

    Args:
        candidates: at least one.
    """
    return _best_guess(candidates.tobytes(), words, rules)


@lru_cache(maxsize=1 << 16)
def _best_guess(key: bytes, words: WordList, rules: Rules) -> int:
    candidates = np.frombuffer(key, np.int64)
    if len(candidates) <= 2:
        return int(candidates[0])
    codes = mark_table(words, rules)[:, candidates].astype(np.int64)
    n = len(codes)
    cells = (codes + CODES * np.arange(n)[:, None]).ravel()
    counts = np.bincount(cells, minlength=CODES * n).reshape(n, CODES)
    # Σ p log p = Σ c log c / n - log n: the number of candidates is the same for all guesses.
    surprise = _C_LOG_C[counts].sum(axis=1)
    surprise[candidates] -= 1e-9
    return int(np.argmin(surprise))


_COUNTS = np.arange(1, 1 << 12, dtype=np.float64)  # no list is longer
_C_LOG_C = np.concatenate([[0.0], _COUNTS * np.log(_COUNTS)])


class ExpertResult(NamedTuple):
    """Over all hidden words, each as likely as the others."""

    success_rate: float
    mean_return: float


@cache
def expert_result(words: WordList, rules: Rules) -> ExpertResult:
    """The expert's success rate and mean return, exact: every hidden word is played."""
    table = mark_table(words, rules)
    total, wins = len(table), 0
    guesses = 0  # wrong ones, over all hidden words
    level = [all_candidates(words)]
    for _ in range(MAX_GUESSES):
        following: list[Candidates] = []
        for candidates in level:
            guess = best_guess(candidates, words, rules)
            codes = table[guess, candidates]
            right = int((codes == ALL_IN_PLACE).sum())
            wins += right
            guesses += len(candidates) - right
            groups = (candidates[codes == code] for code in np.unique(codes))
            following += [group for group in groups if table[guess, group[0]] != ALL_IN_PLACE]
        level = following
    return ExpertResult(wins / total, -guesses / total)


@cache
def return_bound(words: WordList, rules: Rules) -> float:
    """A mean return that no policy exceeds.

    One hidden word at most is found at the first guess. If the first guess has K different
    answers, at most K - 1 words are found at the second, one for each answer but "right".
    """
    table = mark_table(words, rules)
    total = len(table)
    answers = max(len(np.unique(row)) for row in table)
    second = answers - 1
    return -(second + 2 * (total - 1 - second)) / total


NOT_LISTED = "not in the list"
DATA_SKILL: dict[WordList, float] = {"small": 0.314, "large": 0.373}
"""Mean return -4.12, that of the data of Q-SFT's Table 2."""

Replies = Literal["marks", "known"]
Spelling = Literal["letters", "words"]

_MAX_REPLY = 100
"""Marks, at most 26 letters, and five places."""
_MAX_TEXT = MAX_GUESSES * (len("> ") + 2 * LETTERS + _MAX_REPLY)


class Wordle:
    """Find a hidden word of five letters in six guesses.

    Description: after each guess every letter is marked: `g` it is in its place, `y` the
    word has it elsewhere, `b` the word does not have it. A letter is marked as often as
    the word has it. Q-SFT, section 5; LMRL-Gym's Wordle.

    Observation: the guesses so far and their marks, two lines each, empty at the start:
    "> c r a n e", "b y b b g".

    Actions: any text; a word counts, letters apart or together, in any case. Gymnasium's
    actions are the numbers of the words in the list. Legal are those that were not guessed yet.

    Rewards: 0 for the hidden word, -1 for any other guess; a text that is no word of the
    list is a guess, too.

    Start: the hidden word is uniform over the list.

    End: terminated with the hidden word or the sixth guess: the limit is a rule of the
    game, and how many guesses are left can be seen.

    Success: the word was found.

    Ceiling: 100 %, exact: the expert finds every word of every list within six guesses.
    The best mean return is not known; it lies between the expert's, which is exact (every
    hidden word is played), and a bound by counting, both of them named in `ceiling`. The
    expert guesses the word whose marks have the greatest entropy.

    Data policy: with probability `skill` a word that agrees with all marks so far, else any
    word of the list, guessed before or not, uniformly either way. Skill 1 always agrees.

    Arguments:
        words: "small", 412 words, or "large", 754; hidden and guessed words are the same.
        rules: "official", or "reference" for LMRL-Gym's: marks ignore that a letter may
            occur twice, and before every guess the hidden word is drawn again from those that
            agree with the marks so far (which changes no probability).
        replies: "marks", of the last guess, or "known": after them what all marks so far
            say together, "b y b b g, not c n, has r, now any any any any e".
        spelling: "letters", guesses are said with their letters apart, "c r a n e", or "words",
            "crane". Either is understood.

    Version history:
        v0: first version.
    """

    is_transcript = True

    def __init__(
        self,
        words: WordList = "small",
        rules: Rules = "official",
        replies: Replies = "marks",
        spelling: Spelling = "letters",
    ) -> None:
        require_option(words in ("small", "large"), "words", words, "small or large")
        require_option(rules in ("official", "reference"), "rules", rules, "official or reference")
        require_option(replies in ("marks", "known"), "replies", replies, "marks or known")
        require_option(spelling in ("letters", "words"), "spelling", spelling, "letters or words")
        self.words: WordList = words
        self.rules: Rules = rules
        self.replies: Replies = replies
        self._list = load_words(words)
        self._numbers = {word: number for number, word in enumerate(self._list)}
        self._spelled = (
            tuple(spelled(word) for word in self._list) if spelling == "letters" else self._list
        )
        self._table = mark_table(words, rules)
        self._episode = Episode(MAX_GUESSES)
        self._hidden = 0
        self._turns: list[Turn] = []
        self._guesses: list[tuple[str, int]] = []
        self._candidates = all_candidates(words)
        self._is_found = False
        self._not_listed = 0

    @property
    def actions(self) -> None:
        """None: a guess is open text."""
        return None

    @property
    def ceiling(self) -> Ceiling:
        """The expert's success rate, computed over all words."""
        result = expert_result(self.words, self.rules)
        bound = return_bound(self.words, self.rules)
        return Ceiling(
            result.success_rate,
            "exact: the expert, played on every hidden word; its mean return is "
            f"{result.mean_return:.3f}, no policy's is above {bound:.3f}",
        )

    @property
    def data_skill(self) -> float:
        """How often the data policy's guess agrees with all marks."""
        return DATA_SKILL[self.words]

    def reset(self, seed: int) -> Observation:
        """Draws the hidden word from the seed."""
        self.np_random = np.random.default_rng(seed)
        self._draw()
        return self.observation()

    def observation(self) -> Observation:
        """The guesses so far and their marks, as a transcript."""
        text = self._text()
        return Observation(
            text=text,
            image=None,
            admissible_actions=None,
            state_key=text or "start",
            goal="Guess a word of five letters. g in its place, y elsewhere in it, b not in it.",
            task_type="Wordle",
        )

    def step(self, action: str) -> Transition:
        """Guesses a word; costs 1 unless it is the hidden one.

        Raises:
            RuntimeError: the episode is over.
        """
        self._episode.require_open()
        guess = self._numbers.get("".join(action.split()).lower())
        if guess is None:
            self._not_listed += 1
            self._turns.append(Turn(action, NOT_LISTED))
            return self._episode.record(-1.0, terminated=self._episode.is_last_step)
        if self.rules == "reference":
            self._hidden = int(self.np_random.choice(self._candidates))
        code = int(self._table[guess, self._hidden])
        self._guesses.append((self._list[guess], code))
        self._turns.append(Turn(action, self._marks(code)))
        self._candidates = consistent(self._candidates, guess, code, self.words, self.rules)
        self._is_found = code == ALL_IN_PLACE
        return self._episode.record(
            0.0 if self._is_found else -1.0,
            terminated=self._is_found or self._episode.is_last_step,
        )

    def legal_actions(self) -> tuple[str, ...]:
        """The words that were not guessed yet; none once the episode is over."""
        if self._episode.is_over:
            return ()
        said = {self._numbers[word] for word, _ in self._guesses}
        return tuple(word for n, word in enumerate(self._spelled) if n not in said)

    def expert(self) -> ExpertAction:
        """The guess whose marks are the most informative, and how many words are left."""
        self._episode.require_open()
        guess = self._spelled[best_guess(self._candidates, self.words, self.rules)]
        left = len(self._candidates)
        thought = (
            f"only {self._spelled[self._candidates[0]]} is left"
            if left == 1
            else f"{left} words are left, I try {guess}"
        )
        return ExpertAction(guess, (("thoughts", json.dumps(thought)),))

    def data_policy(self, skill: float, randomness: np.random.Generator) -> DataPolicy:
        """With probability `skill` a word that agrees with all marks, else any.

        Raises:
            ConfigError: a skill beyond 0 to 1.
        """
        require_option(0 <= skill <= 1, "skill", skill, "0 (random) to 1 (always in agreement)")

        def act() -> ExpertAction:
            pool = self._candidates if randomness.random() < skill else all_candidates(self.words)
            return ExpertAction(self._spelled[pool[int(randomness.integers(len(pool)))]], ())

        return act

    def success(self) -> bool:
        """Whether the word was found."""
        return self._is_found

    def metrics(self) -> tuple[Metric, ...]:
        """How many guesses were no words, and how many were repeated."""
        repeated = len(self._guesses) - len({word for word, _ in self._guesses})
        return (
            Metric("not_listed", float(self._not_listed)),
            Metric("repeated", float(repeated)),
        )

    def close(self) -> None:
        """Nothing is held open."""

    def _text(self) -> str:
        return write_transcript(self._turns)

    def _marks(self, code: int) -> str:
        return shown(code) if self.replies == "marks" else f"{shown(code)}, {known(self._guesses)}"

    def _draw(self) -> None:
        self._hidden = int(self.np_random.integers(len(self._list)))
        self._turns = []
        self._guesses = []
        self._candidates = all_candidates(self.words)
        self._is_found = False
        self._not_listed = 0
        self._episode.begin()
