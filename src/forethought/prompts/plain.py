"""What the agent is told in a world that has no wording of its own."""

from dataclasses import dataclass

from forethought.configs.parts import AnswerFormat
from forethought.types import Message, Observation


@dataclass(frozen=True)
class PlainPrompter:
    """Goal, state, what may be done, and the form of the answer."""

    actions: tuple[str, ...] | None
    answer_format: AnswerFormat

    @property
    def response_fields(self) -> tuple[str, ...]:
        return ("thoughts", "action") if self.answer_format == "thoughts" else ("action",)

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        lines = [observation.goal]
        if observation.text is not None:
            lines.append(observation.text)
        open_now = observation.admissible_actions or self.actions
        if open_now is not None:
            lines.append("Actions: " + ", ".join(open_now))
        form = '{"thoughts", "action"}' if self.answer_format == "thoughts" else '{"action"}'
        lines.append("Answer as JSON: " + form)
        return (Message("user", "\n".join(lines), observation.image),)
