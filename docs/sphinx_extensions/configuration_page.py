"""The configuration reference as Markdown: every configuration dataclass, field by field."""

from collections.abc import Iterator

import griffe
from api_pages import field, is_configuration, modules_in, text_of


def page(code: griffe.Module) -> Iterator[str]:
    """Algorithms first, then the groups of fields that they share."""
    every = sorted(configurations(code), key=lambda one: (".algorithms." not in one.path, one.name))
    used = {name for one in every for name in groups_in(one)}
    whole = [one for one in every if one.name not in used]
    shared = [one for one in every if one.name in used]
    yield "## Commands and algorithms"
    yield ""
    for one in whole:
        yield from table(one, {other.name for other in shared})
    yield "## Shared groups of fields"
    yield ""
    for one in shared:
        yield from table(one, {other.name for other in shared})


def configurations(module: griffe.Module) -> Iterator[griffe.Class]:
    """Dataclasses whose name ends in `Config`."""
    for one in module.classes.values():
        if not one.is_alias and is_configuration(one):
            yield one
    for inner in modules_in(module):
        yield from configurations(inner)


def groups_in(one: griffe.Class) -> set[str]:
    return {kind_of(member) for member in fields(one)}


def kind_of(member: griffe.Attribute) -> str:
    """The type of a field, without what `Annotated` adds."""
    return str(member.annotation).removeprefix("Annotated[").partition(",")[0]


def fields(one: griffe.Class) -> Iterator[griffe.Attribute]:
    for member in one.attributes.values():
        if member.annotation is not None and "property" not in member.labels:
            yield member


def table(one: griffe.Class, groups: set[str]) -> Iterator[str]:
    yield f"### {one.name}"
    yield ""
    yield text_of(one)
    yield ""
    for attribute in fields(one):
        yield from field(attribute, fence=4, name=f"{one.name}.{attribute.name}")
        kind = kind_of(attribute)
        if kind in groups:
            is_inline = "Inline()" in str(attribute.annotation)
            how = "beside the others" if is_inline else f"as flags `--{flag(attribute.name)}.…`"
            yield f"Fields: [{kind}](#{kind.lower()}), {how}."
            yield ""


def flag(name: str) -> str:
    return name.replace("_", "-")
