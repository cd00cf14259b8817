"""The observation as it is, without words around it."""

from forethought.types import Message, Observation


class BarePrompter:
    """Picture and text of the observation, for an agent that reads no instructions."""

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        """One message; its text is empty where the world says nothing."""
        return (Message("user", observation.text or "", observation.image),)
