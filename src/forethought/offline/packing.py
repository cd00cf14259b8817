"""Examples as they wait in memory to be learned from: their pictures packed."""

from typing import NamedTuple

from forethought.models.batching import Example
from forethought.rollouts.pictures import PictureDecoder, PictureEncoder
from forethought.types import Message, Prompt


class PackedExample(NamedTuple):
    """What the model reads and what it is to write: ids, and pictures as PNG bytes, a drawn one
    a hundredth of its pixels."""

    prompt_ids: tuple[int, ...]
    pngs: tuple[bytes, ...]
    """In the order in which the prompt shows them."""
    completion_ids: tuple[int, ...]

    @property
    def length(self) -> int:
        """Tokens in all."""
        return len(self.prompt_ids) + len(self.completion_ids)

    def unpack(self, image_of: PictureDecoder) -> Example:
        """As it is laid out in a batch; of the prompt's messages the pictures alone are left.

        Args:
            image_of: one for the whole batch, so that equal pictures are decoded once.
        """
        shown = tuple(Message("user", "", image_of(png)) for png in self.pngs)
        return Example(Prompt(shown, self.prompt_ids), self.completion_ids)


class Packer:
    """Packs examples; equal pictures of all of them are packed once, and kept once."""

    def __init__(self) -> None:
        self._png_of = PictureEncoder()

    def __call__(self, example: Example) -> PackedExample:
        prompt = example.prompt
        pngs = tuple(map(self._png_of, prompt.images))
        return PackedExample(prompt.token_ids, pngs, example.completion_ids)
