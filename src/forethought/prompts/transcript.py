"""What the agent is told in worlds of turns: the history, as the conversation that it was."""

from dataclasses import dataclass
from functools import lru_cache

from forethought.configs.parts import AnswerFormat
from forethought.environments.contract import ExpertAction
from forethought.environments.transcript import Turn, read_transcript
from forethought.prompts.answers import write_answer
from forethought.types import Message, Observation


@dataclass(frozen=True)
class TranscriptPrompter:
    """Goal and form of the answer; then the agent's past answers and the world's replies.

    Past answers hold the action alone. Where the agent answers so, too (`action_only`), each
    prompt begins with the one before it and the answer to that, token by token: a whole
    episode is one sequence. That holds for answers in the form of `write_answer`, and for
    chat templates that close an answer with the end-of-sequence token and change no text.
    """

    answer_format: AnswerFormat

    @property
    def response_fields(self) -> tuple[str, ...]:
        return ("thoughts", "action") if self.answer_format == "thoughts" else ("action",)

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        form = '{"thoughts", "action"}' if self.answer_format == "thoughts" else '{"action"}'
        told = [Message("user", f"{observation.goal}\nAnswer as JSON: {form}")]
        for turn in read_transcript(observation.text or ""):
            told += _exchange(turn)
        return tuple(told)


@lru_cache(maxsize=1 << 16)
def _exchange(turn: Turn) -> tuple[Message, Message]:
    answer = write_answer(ExpertAction(turn.action, ()), "action_only")
    return Message("assistant", answer), Message("user", turn.reply)
