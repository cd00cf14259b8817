"""Chat templates run within bounds: of time, and of the size of all that they make.

A template comes with a model's folder, so a stranger wrote it. The library's sandbox keeps it
from the machine, but not from endless loops, nor from a text of gigabytes: `'a' * 10**10` in one
expression, a string that doubles in a loop, a list that holds itself twice again and again.
Here every loop, call and filter looks at the clock, and everything that can grow is measured
before and after. What goes beyond is an error of the template.
"""

import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from typing import Any, cast

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from transformers.utils.chat_template_utils import (
    _cached_compile_jinja_template,  # pyright: ignore[reportPrivateUsage]
)

DATE = datetime(2024, 7, 26)
"""What every template is told the date is: a prompt is a function of its messages, today and
after a resume. Llama 3.1's template names this day where it is told none."""
CPU_S = 5.0
"""Processor time of this thread, for one prompt. Templates take milliseconds."""
SIZE = 1 << 24
"""Characters or, of a number, its value: for any one thing."""
ELEMENTS = 1 << 17
"""Limit of a list or a mapping and all that it holds; to count them takes time, too."""
WORK = 1 << 28
"""Characters and elements of all that is made for one prompt, and at most by one operation."""
DIGITS = 4096
"""Binary digits of a number."""
SOURCE = 1 << 20
"""Characters of the template itself."""

WIDE = re.compile(r"\d{6}")
"""A width in a format string."""
RANDOM = {"globals": ("lipsum",), "filters": ("random",)}
"""What gives another result each time."""


class TemplateLimitError(SecurityError):
    """A template went beyond its bounds."""


class Meter:
    """What one rendering has used."""

    def __init__(self) -> None:
        self._given: object = None
        self._deadline = self._left = 0.0

    def start(self, given: object) -> None:
        """
        Args:
            given: what the template is given, and need not be measured.
        """
        self._given = given
        self._deadline, self._left = time.thread_time() + CPU_S, WORK

    def tick(self) -> str:
        """Looks at the clock. Written in a loop, it writes nothing."""
        if time.thread_time() > self._deadline:
            raise TemplateLimitError(f"it did not end within {CPU_S:g} s")
        return ""

    def made(self, value: Any) -> Any:
        """Counts what was made."""
        self._left -= self._size(value)
        if self._left < 0:
            raise TemplateLimitError(f"it makes more than {WORK:,} characters")
        return value

    def require(self, *operands: Any) -> None:
        """Refuses an operation by what goes into it: its result has at most the product of the
        two largest as its size."""
        self.tick()
        first = second = 1
        for operand in operands:
            size = self._size(operand)
            first, second = max(first, size), max(second, min(first, size))
        if first * second > WORK:
            raise TemplateLimitError(f"it makes more than {WORK:,} characters")

    def _size(self, value: Any) -> int:
        if isinstance(value, str | range):
            size = len(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            size = abs(value)
        elif isinstance(value, list | tuple | dict | Namespace) and value is not self._given:
            size = _elements(value)
        else:
            size = 1
        if size > SIZE:
            raise TemplateLimitError(f"it makes something of more than {SIZE:,} characters")
        return size


def _elements(value: Any) -> int:
    """Everything that would be written: what is in a list twice counts twice."""
    elements, characters, waiting = 0, 0, [value]
    while waiting:
        one: Any = waiting.pop()
        elements += 1
        characters += len(one) if isinstance(one, str) else 0
        if elements + len(waiting) > ELEMENTS:
            raise TemplateLimitError(f"it makes a list of more than {ELEMENTS:,} elements")
        if isinstance(one, Namespace):
            waiting.append(one._Namespace__attrs)  # pyright: ignore
        elif isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            waiting += one
    return elements + characters


class _Generator(CodeGenerator):
    """Templates compiled so that what they build passes through the meter."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self._measured(super().visit_Concat, node, frame)

    def visit_List(self, node: nodes.List, frame: Frame) -> None:  # noqa: N802
        self._measured(super().visit_List, node, frame)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:  # noqa: N802
        self._measured(super().visit_Dict, node, frame)

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:  # noqa: N802
        if node.ctx == "load":
            self._measured(super().visit_Tuple, node, frame)
        else:
            super().visit_Tuple(node, frame)

    def _measured(self, visit: Callable[[Any, Frame], None], node: Any, frame: Frame) -> None:
        self.write("environment.meter.made(")
        visit(node, frame)
        self.write(")")


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with the library's filters, globals and tags, and with bounds."""

    code_generator_class = _Generator
    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)

    def __init__(self) -> None:
        library: Any = _cached_compile_jinja_template("").environment
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[type(one) for one in library.extensions.values()],
            # Otherwise constant expressions are computed as the template is read.
            optimized=False,
        )
        self.meter = Meter()
        self.globals.update(library.globals)
        cast(dict[str, Any], self.globals)["strftime_now"] = DATE.strftime
        for name in RANDOM["globals"]:
            self.globals.pop(name, None)
        kept = {n: f for n, f in library.filters.items() if n not in RANDOM["filters"]}
        self.filters: Any = {name: self._bounded(filter) for name, filter in kept.items()}
        self.concat: Any = self._join

    def read(self, source: str) -> tuple[Any, str]:
        """The template, and all texts that it holds, a null character between them."""
        if len(source) > SOURCE:
            raise TemplateLimitError(f"it has more than {SOURCE:,} characters")
        tree = self.parse(source)
        texts = [node.data for node in tree.find_all(nodes.TemplateData)]
        values = [node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)]
        for loop in list(tree.find_all(nodes.For)):
            clock = nodes.EnvironmentAttribute("meter")
            tick = nodes.Call(nodes.Getattr(clock, "tick", "load"), [], [], None, None)
            loop.body.insert(0, nodes.ExprStmt(tick, lineno=loop.lineno))
        return self.from_string(tree), "\0".join([*texts, *values])

    def write(self, template: Any, settings: Mapping[str, object]) -> str:
        """Renders a template of this environment."""
        self.meter.start(settings.get("messages"))
        return self._join(template.generate(settings))

    def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        own = getattr(function, "__self__", None)
        self.meter.require(own, *args, *kwargs.values())
        return self.meter.made(super().call(context, function, *args, **kwargs))

    def getattr(self, obj: Any, attribute: str) -> Any:
        if attribute in ("format", "format_map") and isinstance(obj, str):
            _require_narrow(obj)
        return super().getattr(obj, attribute)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        self.meter.require(left, right)
        if operator == "**" and isinstance(left, int) and isinstance(right, int):
            _require_digits(left.bit_length() * abs(right))
        if operator == "%" and isinstance(left, str):
            _require_narrow(left)
        return self.meter.made(super().call_binop(context, operator, left, right))

    def _bounded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            # A filter may be given the environment or the context first, which have no size.
            self.meter.require(*args, *kwargs.values())
            if function.__name__ == "do_format":
                _require_narrow(str(args[0]))
            return self.meter.made(function(*args, **kwargs))

        return bounded

    def _join(self, pieces: Any) -> str:
        return "".join(self.meter.made(str(piece)) for piece in pieces)


def _require_narrow(format_string: str) -> None:
    if WIDE.search(format_string):
        raise TemplateLimitError("it writes something into a width of 100,000 or more")


def _require_digits(digits: int) -> None:
    if digits > DIGITS:
        raise TemplateLimitError(f"it computes a number of more than {DIGITS:,} binary digits")
