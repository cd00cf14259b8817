"""Which tokens go on towards an action of the world."""

from collections.abc import Iterable, Sequence

from forethought.errors import ConfigError


class AnswerTrie:
    """Answers, token by token: what may come next after the tokens so far."""

    def __init__(self, answers: Iterable[Sequence[int]]) -> None:
        """
        Args:
            answers: token ids, the end-of-sequence token included.
        """
        self._next: dict[tuple[int, ...], tuple[int, ...]] = {}
        for answer in answers:
            for length, token in enumerate(answer):
                so_far = tuple(answer[:length])
                choices = self._next.get(so_far, ())
                if token not in choices:
                    self._next[so_far] = (*choices, token)

    def choices(self, answer: Sequence[int]) -> list[tuple[int, ...]]:
        """For each token of an answer, what could have stood there.

        Raises:
            ConfigError: it is none of the answers, or not the beginning of one.
        """
        found: list[tuple[int, ...]] = []
        for length, token in enumerate(answer):
            choices = self._next.get(tuple(answer[:length]), ())
            if token not in choices:
                raise ConfigError(
                    "action_set is 'legal', but the data hold an answer that names no action of "
                    f"this world (token {length} of {len(answer)}) — expected answers in the form "
                    "of --prompt.format action_only; use action_set vocabulary, or leave it out"
                )
            found.append(choices)
        return found
