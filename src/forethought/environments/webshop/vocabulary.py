"""What the generated catalogue is made of: kinds of product, option groups, phrases of goals."""

from functools import cache
from importlib.resources import files
from typing import NamedTuple

_COLORS = (
    "black white navy red grey green beige brown pink purple orange yellow teal burgundy khaki "
    "ivory silver gold turquoise lavender charcoal olive"
)
_SCENTS = "lavender vanilla citrus rose mint jasmine sandalwood cucumber ocean"
_FLAVORS = "original vanilla peanut cinnamon honey lemon mint coconut caramel garlic berry"

OPTION_GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "color": ("color", tuple(_COLORS.split())),
    "size": ("size", ("x-small", "small", "medium", "large", "x-large", "xx-large", "3x-large")),
    "shoe": ("size", ("6", "6.5", "7", "7.5", "8", "8.5", "9", "9.5", "10", "11")),
    "scent": ("scent", tuple(_SCENTS.split())),
    "flavor": ("flavor name", tuple(_FLAVORS.split())),
    "volume": (
        "size",
        ("2 fl oz", "4 fl oz", "8 fl oz", "12 fl oz", "16 fl oz", "24 fl oz", "32 fl oz"),
    ),
    "weight": ("size", ("4 ounce", "8 ounce", "12 ounce", "1 pound", "2 pound", "5 pound")),
    "pack": ("size", ("pack of 1", "pack of 2", "pack of 3", "pack of 4", "pack of 6")),
    "count": ("item count", ("1 count", "2 count", "4 count", "6 count", "8 count", "12 count")),
    "style": ("style", ("classic", "modern", "compact", "deluxe", "sport", "vintage")),
    "model": ("style", ("iphone 11", "iphone 12", "iphone 13", "galaxy s21", "pixel 6")),
    "length": ("size", ("1 ft", "3 ft", "6 ft", "10 ft", "15 ft")),
    "capacity": ("size", ("5000 mah", "10000 mah", "20000 mah", "30000 mah")),
    "seats": ("size", ("loveseat", "three seat", "four seat", "sectional")),
    "rug": ("size", ("2 x 3 ft", "4 x 6 ft", "5 x 7 ft", "8 x 10 ft")),
    "bed": ("size", ("twin", "full", "queen", "king")),
    "panel": ("size", ("42 x 63 inch", "42 x 84 inch", "52 x 84 inch", "52 x 96 inch")),
    "inches": ("size", ("8 inch", "10 inch", "12 inch", "14 inch")),
}
"""Name of an option as the page shows it, and its values; a value is in one group of a product."""

ASKED: dict[str, tuple[str, ...]] = {
    "color": ("in {}", "the color should be {}", "in the color {}"),
    "size": ("in size {}", "the size should be {}", "size {}"),
    "scent": ("with {} scent", "{} scented", "the scent should be {}"),
    "flavor name": ("{} flavored", "with {} flavor", "the flavor should be {}"),
    "item count": ("with {}", "i want {}", "it should be {}"),
    "style": ("in {} style", "the style should be {}", "for {}"),
}
"""How a shopper asks for an option."""

FRAMES = (
    "i need {noun} that is {all}{options}",
    "i'm looking for {first} {noun}{rest}{options}",
    "find me {all} {noun}{options}",
    "i want {first} {noun}{rest}{options}",
    "i would like to buy {noun} with {all}{options}",
    "can you find {noun} which is {all}{options}",
    "looking for {all} {noun}{options}",
    "please show me {first} {noun}{rest}{options}",
    "i am interested in {noun} featuring {all}{options}",
    "get me {noun}. it must be {all}{options}",
    "i'd like {all} {noun}{options}",
    "my sister asked for {noun}, {all}{options}",
)
"""Ways to ask: `all` attributes, or the `first` before the noun and the `rest` after it."""

BULLETS = (
    "{}: made for everyday use",
    "Designed to be {}",
    "{} for your comfort",
    "You will notice that it is {}",
    "Our customers like it for being {}",
)

DESCRIPTIONS = (
    "The {brand} {noun} is {first} and {second}. Contact us with any question.",
    "{brand} makes this {noun} for people who ask for {first}. It is {second}, too.",
    "A {noun} by {brand}: {first}, {second}, and checked before it is sent.",
)


class Kind(NamedTuple):
    """A kind of product."""

    name: str
    """ "dress shirt": what shoppers type, the product's `query`."""
    category: str
    path: str
    """ "Clothing, Shoes & Jewelry › Men › Clothing › Shirts"."""
    option_groups: tuple[str, ...]
    prices: tuple[float, float]
    attributes: tuple[str, ...]


@cache
def load_kinds() -> tuple[Kind, ...]:
    """All kinds, in the order of the file."""
    text = (files("forethought.environments.webshop") / "kinds.txt").read_text(encoding="utf-8")
    kinds: list[Kind] = []
    category = department = ""
    for line in text.splitlines():
        if line.startswith("["):
            category, _, department = line[1:].partition("] ")
        elif line and not line.startswith("#"):
            name, path, groups, prices, attributes = line.split(" | ")
            low, high = map(float, prices.split())
            kinds.append(
                Kind(
                    name=name,
                    category=category,
                    path=f"{department} › {path}",
                    option_groups=tuple(groups.split()),
                    prices=(low, high),
                    attributes=tuple(attributes.split(", ")),
                )
            )
    return tuple(kinds)
