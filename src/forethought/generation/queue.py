"""Which request is answered next."""

from forethought.generation.contract import GenerationRequest


def room_for(request: GenerationRequest) -> int:
    """Positions that a request may come to fill: its prompt and the longest answer."""
    return len(request.prompt.token_ids) + request.max_new_tokens


class RequestQueue:
    """Requests wait in rounds; in a round, those that need the most room go first.

    So rows of like length are answered together, which leaves little of the cache's window
    empty, and the longest answers are not begun last. Nobody is overtaken by a later round.
    """

    def __init__(self) -> None:
        self._round: list[GenerationRequest] = []
        self._next_round: list[GenerationRequest] = []

    def __len__(self) -> int:
        return len(self._round) + len(self._next_round)

    def put(self, request: GenerationRequest) -> None:
        self._next_round.append(request)

    def take(self, count: int) -> list[GenerationRequest]:
        """At most so many, in the order in which they should be answered."""
        taken: list[GenerationRequest] = []
        while len(taken) < count and len(self):
            if not self._round:
                self._round, self._next_round = sorted(self._next_round, key=room_for), []
            taken.append(self._round.pop())
        return taken
