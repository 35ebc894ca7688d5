"""How the code reads: kernels with few arguments, one name for one thing, errors with fields, documented public names.

Everything is read from the syntax trees of `src`; nothing is imported.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
PUBLIC_MODULES = ("audit", "environments", "live", "planning", "plot", "problems", "reference", "testing", "theory")
"""Modules of `gainful` whose `__all__` is public."""
INTERFACES = {"DRAWS"}
"""Constants that every module of one kind defines, with a meaning that is the same for all."""
MOST_KERNEL_ARGUMENTS = 8

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def modules() -> dict[str, ast.Module]:
    """The syntax tree of every module, by its dotted name."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        name = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        found[name] = ast.parse(file.read_text(encoding="utf-8"))
    return found


def decorators(node: Function | ast.ClassDef) -> set[str]:
    """The last words of its decorators: "kernel" for @kernel and @_compiled.kernel(...)."""
    found = set()
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        found.add(called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", ""))
    return found


def arguments(node: Function) -> list[str]:
    """The names of its arguments, without self and cls."""
    a = node.args
    named = [x.arg for x in (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg) if x is not None]
    return [name for name in named if name not in ("self", "cls")]


def check(offenders: list[str]) -> None:
    """Fail with all offenders, if there are any."""
    assert not offenders, "\n".join([f"{len(offenders)} offenders:", *sorted(offenders)])


# ---------------------------------------------------------------------- kernels, layout, names


def test_no_kernel_takes_many_arguments() -> None:
    offenders = []
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and decorators(node) & {"kernel", "inlined"}:
                n = len(arguments(node))
                if n > MOST_KERNEL_ARGUMENTS:
                    offenders.append(f"{module}.{node.name}: {n} arguments")
    check(offenders)


def test_the_formatter_is_hardly_ever_switched_off() -> None:
    offenders = []
    for file in sorted(SOURCE.rglob("*.py")):
        for i, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(r"# fmt: (skip|off)", line):
                offenders.append(f"{file.relative_to(SOURCE)}:{i}")
    check(offenders)


def test_a_class_name_is_one_class() -> None:
    homes = defaultdict(set)
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].add(module)
    check([f"{name}: {', '.join(sorted(m))}" for name, m in homes.items() if len(m) > 1])


def test_a_constant_name_is_one_constant() -> None:
    homes = defaultdict(set)
    for module, tree in modules().items():
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in targets:
                for name in ast.walk(target) if isinstance(target, ast.AST) else ():
                    if isinstance(name, ast.Name) and re.fullmatch(r"[A-Z][A-Z0-9_]+", name.id):
                        homes[name.id].add(module)
    twice = {name: found for name, found in homes.items() if len(found) > 1 and name not in INTERFACES}
    check([f"{name}: {', '.join(sorted(found))}" for name, found in twice.items()])


# ---------------------------------------------------------------------- errors


SENTENCE = re.compile(r"[;:.!?]( |$)|\b(is|are|was|has|have|does|needs|expected|cannot)\b")


def is_a_name(node: ast.expr) -> bool:
    """Whether an expression may name an argument, an option or a part of one ("axis 0"), and is not a sentence."""
    if isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    elif isinstance(node, ast.Constant):
        text = str(node.value)
    else:
        return True
    return 0 < len(text.split()) <= 5 and not SENTENCE.search(text)


def test_an_invalid_argument_is_named() -> None:
    offenders = []
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "InvalidArgumentError":
                given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "name")]
                if not given or not is_a_name(given[0]):
                    offenders.append(f"{module}:{node.lineno}: {ast.unparse(node)[:80]}")
    check(offenders)


def test_nothing_parses_a_message() -> None:
    parsing = {
        "split",
        "rsplit",
        "partition",
        "startswith",
        "endswith",
        "find",
        "index",
        "removeprefix",
        "removesuffix",
    }
    offenders = []
    for module, tree in modules().items():
        for handler in ast.walk(tree):
            if isinstance(handler, ast.ExceptHandler) and handler.name:
                message = f"str({handler.name})"
                for node in ast.walk(handler):
                    if (
                        isinstance(node, ast.Attribute) and node.attr in parsing and ast.unparse(node.value) == message
                    ) or (isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]) == message):
                        offenders.append(f"{module}:{node.lineno}: {ast.unparse(node)}")
    check(offenders)


# ---------------------------------------------------------------------- documentation


@dataclass(frozen=True)
class PublicName:
    """A public class or function, with its module."""

    module: str
    node: Function | ast.ClassDef
    path: str

    @property
    def docstring(self) -> str:
        return ast.get_docstring(self.node) or ""

    def section(self, title: str) -> str:
        """The text of a NumPy-style section, or nothing."""
        found = re.search(rf"^{title}\n-{{3,}}\n(.*?)(?=^[A-Z][A-Za-z ]+\n-{{3,}}$|\Z)", self.docstring, re.M | re.S)
        return found[1] if found else ""


@cache
def offers(module: str) -> dict[str, tuple[str, str] | Function | ast.ClassDef]:
    """What a module defines, and what it imports from gainful: (module, name)."""
    found: dict[str, tuple[str, str] | Function | ast.ClassDef] = {}
    tree = modules().get(module, ast.Module([], []))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gainful"):
            found |= {alias.asname or alias.name: (str(node.module), alias.name) for alias in node.names}
    return found | {node.name: node for node in tree.body if isinstance(node, Function | ast.ClassDef)}


def resolve(module: str, name: str) -> tuple[str, Function | ast.ClassDef] | None:
    """Where a name that `module` offers is defined, following imports inside gainful."""
    found = offers(module).get(name)
    if isinstance(found, tuple):  # a module imports itself where it offers its submodules
        return None if found == (module, name) else resolve(*found)
    return None if found is None else (module, found)


def exported(module: str) -> list[str]:
    """What the `__all__` of a module lists."""
    for node in modules()[module].body if module in modules() else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


@cache
def public_names() -> tuple[PublicName, ...]:
    """Public functions and classes, and the public methods and properties that these classes define or inherit.

    A method that overrides another one is documented there.
    """
    waiting = [("gainful", name) for name in exported("gainful")]
    waiting += [(f"gainful.{m}", name) for m in PUBLIC_MODULES for name in exported(f"gainful.{m}")]
    found: dict[str, PublicName] = {}
    for home in filter(None, (resolve(*one) for one in waiting)):
        module, node = home
        found[f"{module}.{node.name}"] = PublicName(module, node, f"{module}.{node.name}")
        if isinstance(node, ast.ClassDef):
            for where, owner, member in members(module, node):
                path = f"{where}.{owner}.{member.name}"
                found[path] = PublicName(where, member, path)
    return tuple(found.values())


def members(module: str, node: ast.ClassDef) -> Iterator[tuple[str, str, Function]]:
    """Module, class and node of the public members of a class, each in the base where it first appears."""
    bases = [home for base in node.bases if isinstance(base, ast.Name) and (home := resolve(module, base.id))]
    inherited = [one for where, base in bases if isinstance(base, ast.ClassDef) for one in members(where, base)]
    yield from inherited
    known = {member.name for _, _, member in inherited}
    for member in node.body:
        if isinstance(member, Function) and not member.name.startswith("_") and member.name not in known:
            yield module, node.name, member


def functions() -> Iterator[tuple[PublicName, Function]]:
    """Public functions and methods; no properties, no setters, no overload signatures."""
    for name in public_names():
        node = name.node
        if isinstance(node, Function) and not decorators(node) & {
            "property",
            "cached_property",
            "setter",
            "overload",
        }:
            yield name, node


def is_top_level(name: PublicName) -> bool:
    return name.path == f"{name.module}.{name.node.name}"


def is_error(name: PublicName) -> bool:
    return name.module == "gainful.errors" or name.node.name.endswith(("Error", "Warning"))


def test_public_names_are_found() -> None:
    paths = {name.path for name in public_names()}
    assert {"gainful.planning.solve.solve", "gainful.plot.curves.regret", "gainful.mdp.model.MDP.from_table"} <= paths
    assert {"gainful.environments.riverswim.riverswim", "gainful.testing.agents.check_agent"} <= paths
    assert len(paths) > 150


def test_every_public_name_has_a_docstring() -> None:
    offenders = [
        name.path
        for name in public_names()
        if not name.docstring and not decorators(name.node) & {"setter", "overload"}
    ]
    check(offenders)


def test_parameters_are_documented() -> None:
    offenders = []
    for name, node in functions():
        section = name.section("Parameters")
        documented = set(re.findall(r"\w+", " ".join(re.findall(r"^([\w*][^:\n]*)", section, re.M))))
        missing = [argument for argument in arguments(node) if argument not in documented]
        if missing:
            offenders.append(f"{name.path}: {', '.join(missing)}")
    for name in public_names():
        described = name.node
        if not isinstance(described, ast.ClassDef) or is_error(name) or not takes_arguments(described):
            continue
        if not (name.section("Parameters") or name.section("Attributes")):
            offenders.append(f"{name.path}: no Parameters or Attributes")
    check(offenders)


def takes_arguments(node: ast.ClassDef) -> bool:
    """Whether a class is made from arguments: its own __init__ has some, or it is a dataclass with fields."""
    own = [m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"]
    if own:
        return bool(arguments(own[0]))
    tuples = any(ast.unparse(base).endswith("NamedTuple") for base in node.bases)
    return bool(decorators(node) & {"dataclass"} or tuples) and any(isinstance(m, ast.AnnAssign) for m in node.body)


def test_results_are_documented() -> None:
    offenders = []
    for name, node in functions():
        result = "None" if node.returns is None else ast.unparse(node.returns)
        if result not in ("None", "NoReturn", "Never") and not (name.section("Returns") or name.section("Yields")):
            offenders.append(name.path)
    check(offenders)


def test_functions_and_classes_have_an_example() -> None:
    offenders = [
        name.path
        for name in public_names()
        if is_top_level(name) and not is_error(name) and ">>>" not in name.section("Examples")
    ]
    check(offenders)
