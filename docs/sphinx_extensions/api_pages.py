"""The API reference as Markdown: one heading per module, one entry per class and function."""

import json
import re
from collections.abc import Iterator

import griffe


def package(module: griffe.Module, *, level: int = 2) -> Iterator[str]:
    """A package or module, and every module in it."""
    members = list(own_members(module))
    if members or level == 2:
        yield f"{'#' * min(level, 3)} {module.path}"
        yield ""
        yield text_of(module)
        yield ""
    for member in members:
        yield from entry(member, fence=6)
    for inner in modules_in(module):
        yield from package(inner, level=level + 1)


def modules_in(module: griffe.Module) -> list[griffe.Module]:
    """Its public modules by name, without those that it imports."""
    names = sorted(name for name in module.modules if not name.startswith("_"))
    return [module.modules[name] for name in names if not module.modules[name].is_alias]


def own_members(module: griffe.Module) -> Iterator[griffe.Class | griffe.Function]:
    """Public classes and functions that the module itself defines, in their order in the file."""
    found = [*module.classes.values(), *module.functions.values()]
    defined = [one for one in found if not one.is_alias and not one.name.startswith("_")]
    yield from sorted(defined, key=lambda one: one.lineno or 0)


def entry(member: griffe.Class | griffe.Function, *, fence: int) -> Iterator[str]:
    """A directive of Sphinx's Python domain; the fence of what is inside it is shorter."""
    bars = ":" * fence
    if isinstance(member, griffe.Class):
        bases = ", ".join(str(base) for base in member.bases)
        yield f"{bars}{{py:class}} {member.name}{f'({bases})' if bases else ''}"
    else:
        kind = "method" if isinstance(member.parent, griffe.Class) else "function"
        yield f"{bars}{{py:{kind}}} {one_line(member.signature())}"
    yield f":module: {member.module.path}"
    yield ""
    yield text_of(member)
    yield ""
    if is_configuration(member):
        yield f"Fields: [{member.name}](../configuration.md#{member.name.lower()})."
        yield ""
    elif isinstance(member, griffe.Class):
        for attribute in own_attributes(member):
            yield from field(attribute, fence=fence - 2)
        for function in member.functions.values():
            if not function.is_alias and not function.name.startswith("_"):
                yield from entry(function, fence=fence - 2)
    yield bars
    yield ""


def is_configuration(member: griffe.Object) -> bool:
    """Has a section in the configuration reference."""
    return member.name.endswith("Config") and "dataclass" in member.labels


def own_attributes(member: griffe.Class) -> Iterator[griffe.Attribute]:
    """Annotated fields, and properties that say what they are."""
    for attribute in member.attributes.values():
        is_property = "property" in attribute.labels
        if attribute.is_alias or attribute.name.startswith("_"):
            continue
        if attribute.docstring or (attribute.annotation is not None and not is_property):
            yield attribute


def field(attribute: griffe.Attribute, *, fence: int, name: str | None = None) -> Iterator[str]:
    """A field of a dataclass, or a property.

    Args:
        name: how it is called; by default its own name.
    """
    is_property = "property" in attribute.labels
    kind = "property" if is_property else "attribute"
    yield f"{':' * fence}{{py:{kind}}} {name or attribute.name}"
    yield f":module: {attribute.module.path}"
    if attribute.annotation is not None:
        yield f":type: {one_line(str(attribute.annotation))}"
    if attribute.value is not None and not is_property:
        yield f":value: {json.dumps(default(str(attribute.value)), ensure_ascii=False)}"
    yield ""
    yield text_of(attribute) or comment_of(attribute)
    yield ":" * fence
    yield ""


def default(value: str) -> str:
    """The value itself, where a dataclass makes it by a factory."""
    value = one_line(value)
    factory = re.fullmatch(r"field\(default_factory=(?:lambda: (.*)|(\w+))\)", value)
    if factory is None:
        return value
    return factory[1] or f"{factory[2]}()"


def text_of(member: griffe.Object) -> str:
    """The docstring as Markdown; its sections of arguments and errors become lists."""
    if member.docstring is None:
        return ""
    lines: list[str] = []
    for section in member.docstring.parsed:
        if section.kind is griffe.DocstringSectionKind.text:
            lines += [section.value, ""]
        elif section.kind is griffe.DocstringSectionKind.parameters:
            lines += [f":param {one.name}: {one_line(one.description)}" for one in section.value]
        elif section.kind is griffe.DocstringSectionKind.raises:
            lines += [
                f":raises {one.annotation}: {one_line(one.description)}" for one in section.value
            ]
        elif section.kind is griffe.DocstringSectionKind.returns:
            lines += [f":returns: {one_line(one.description)}" for one in section.value]
        elif section.kind is griffe.DocstringSectionKind.admonition:
            lines += ["", f"{section.title}:", "", section.value.description, ""]
    return "\n".join(lines)


def comment_of(member: griffe.Object) -> str:
    """What a comment at the end of the line says: how short records explain their fields."""
    source = member.source
    return source.partition("  # ")[2].strip()


def one_line(text: str) -> str:
    return " ".join(text.split())
