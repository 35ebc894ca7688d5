"""Names of things that are not gainful's own: "my_module:MyAgent", names that packages register, and their imports.

A module is imported on the user's word only: because a spec, a command line or a call names it, or because it was
allowed (`allow=`). What a stored file says never causes an import. One line on stderr says which file is imported.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import io
import re
import sys
import sysconfig
import tokenize
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from gainful.errors import InvalidArgumentError, UnknownNameError, suggestion

AGENT_GROUP, ENVIRONMENT_GROUP = "gainful.agents", "gainful.environments"
"""The groups of entry points in which installed packages register names."""
_WORD = r"[^\W\d]\w*"
_REFERENCE = re.compile(rf"{_WORD}(\.{_WORD})*:{_WORD}(\.{_WORD})*")


class ImportRefusedError(InvalidArgumentError):
    """A stored file names a class of a module that nobody allowed to import."""


def is_reference(name: str) -> bool:
    """Whether a name is "module:object", such as "my_package.agents:MyAgent".

    >>> [is_reference(name) for name in ("my_module:MyAgent", "scal-plus", "my_module:Pump-v0", "C:/van.csv")]
    [True, False, False, False]
    """
    return _REFERENCE.fullmatch(name) is not None


def registered(group: str) -> dict[str, str]:
    """The names that installed packages have registered, with the "module:object" of each; nothing is imported."""
    return {point.name: point.value for point in sorted(entry_points(group=group), key=lambda point: point.value)}


# ---------------------------------------------------------------------- imports


def _say_on_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


announce: Callable[[str], None] = _say_on_stderr
"""Called with one line before a module is imported."""


_looked_in: list[str] = []
"""Folders in which modules and tables are looked for, apart from where Python looks: the last one named comes first."""


_appended: list[str] = []
"""Folders at the end of `sys.path` that were put there."""


def look_in(folders: Iterable[str | Path]) -> None:
    """Look for modules and tables in these folders too.

    They come at the end of `sys.path`, so that no file there hides a module of Python's or an installed one.
    """
    for folder in reversed([str(Path(folder).resolve()) for folder in folders]):
        if folder in _looked_in:
            _looked_in.remove(folder)
        _looked_in.insert(0, folder)
    _put_at_the_end(_looked_in)


def _put_at_the_end(folders: list[str]) -> None:
    """Let `sys.path` end in these folders, in this order, and in those that were appended before."""
    ours = [*folders, *(folder for folder in _appended if folder not in folders)]
    for folder in _appended:
        if folder in sys.path:
            sys.path.remove(folder)
    _appended[:] = [folder for folder in ours if folder not in sys.path]
    sys.path.extend(_appended)


def folders_looked_in() -> list[str]:
    """The folders given to `look_in`, and the current one."""
    return list(dict.fromkeys([*_looked_in, str(Path.cwd())]))


def load_object(reference: str) -> Any:
    """The object behind "module:object"; the module is imported if it is not yet.

    It is looked for where Python looks, then in the folders of `look_in`, then in the current one.

    >>> load_object("decimal:Decimal")
    <class 'decimal.Decimal'>
    """
    module_name, _, path = reference.partition(":")
    module = import_module(module_name)
    found: Any = module
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            names = [name for name in vars(module) if not name.startswith("_")]
            where = getattr(module, "__file__", None) or "built in"
            raise UnknownNameError(
                f"module '{module_name}' ({where}) has no '{path}'",
                name=reference,
                found=path,
                hint=suggestion(path, names) if names else "it is empty",
            ) from None
    return found


def import_module(name: str) -> Any:
    """The module of this name, imported now if it was not, after one line that says so."""
    if name == "__main__":
        raise InvalidArgumentError(
            name, hint="put it into a file my_module.py, and write my_module:...", problem="__main__ cannot be imported"
        )
    folders = folders_looked_in()
    _put_at_the_end(folders)
    importlib.invalidate_caches()
    wanted = _file_of(name, folders)
    if name in sys.modules:
        _check_same_file(name, wanted)
        return sys.modules[name]
    announce(f"importing {name}" + (f" from {wanted}" if wanted is not None else ""))
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UnknownNameError(
                f"there is no module '{error.name}'",
                name=name,
                found=name,
                hint=f"put {error.name}.py beside the spec or into the current folder, or install it (looked in "
                f"{', '.join(folders)})",
            ) from error
        raise InvalidArgumentError(name, problem=f"{name} cannot be imported: {error}") from error
    except Exception as error:
        place = _place_of(error)
        raise InvalidArgumentError(
            name, problem=f"{name} cannot be imported: {type(error).__name__}: {error}{place}"
        ) from error
    if wanted is not None:
        _check_same_file(name, wanted)
    _sources_of(name)  # as they are now: a later edit of the file does not change what was imported
    return module


def _place_of(error: BaseException) -> str:
    """Where an error was raised, as " (my_module.py, line 3)"."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        place = f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return "" if isinstance(error, SyntaxError) else place


def _check_same_file(name: str, wanted: str | None) -> None:
    """Raise an error if a module of this name was imported from another file than the one that is meant."""
    found = getattr(sys.modules[name], "__file__", None)
    if wanted is not None and (found is None or Path(found).resolve() != Path(wanted).resolve()):
        raise InvalidArgumentError(
            name,
            hint="give the file another name, or use a new process",
            problem=f"module '{name}' is {found or 'built in'}, which hides {wanted}",
        )


def _file_of(name: str, folders: list[str]) -> str | None:
    """The file of a module in one of the folders; None if it is not there."""
    path: list[str] | None = folders
    spec: ModuleSpec | None = None
    parts = name.split(".")
    for i in range(len(parts)):
        spec = PathFinder.find_spec(".".join(parts[: i + 1]), path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or [])
    return spec.origin if spec is not None else None


# ---------------------------------------------------------------------- identity


def source_digest(reference: str) -> str:
    """A digest of the code of "module:object", whose module has been imported: 16 hexadecimal digits.

    It covers the module and every module that it imports, directly or not, from the same folder (of an installed
    package: from the same package). Comments, blank lines and spaces at the ends of lines do not count.
    """
    module = reference.partition(":")[0]
    digest = hashlib.sha256()
    for name, text in sorted(_sources_of(module).items()):
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()[:16]


_sources: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


def _sources_of(name: str) -> dict[str, str]:
    """The sources of an imported module, as they were when this was first asked."""
    module = import_module(name)
    if module not in _sources:
        _sources[module] = _read_sources(name) or {name: _version_of(name)}
    return _sources[module]


def _version_of(name: str) -> str:
    """The version of the package of a module without a source in Python."""
    try:
        return version(name.partition(".")[0])
    except PackageNotFoundError:
        return ""


def _read_sources(module: str) -> dict[str, str]:
    """The texts, without comments, of a module and of what it imports from the same folder or package."""
    top = module.partition(".")[0]
    root = _root_of(top)
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or (_is_installed(root) and name.partition(".")[0] != top):
            continue
        file = _file_of(name, [] if root is None else [root])
        if file is None or not file.endswith(".py"):
            continue
        text = Path(file).read_text(encoding="utf-8")
        found[name] = _without_comments(text)
        waiting += [*_parents(name), *_imports_of(text, name, is_package=Path(file).name == "__init__.py")]
    return found


def _parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    for i in range(1, len(parts)):
        yield ".".join(parts[:i])


def _root_of(top: str) -> str | None:
    """The folder in which a top-level module or package lies."""
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is None:
        return None
    here = Path(file).resolve()
    return str(here.parent.parent if here.name == "__init__.py" else here.parent)


def _is_installed(root: str | None) -> bool:
    """Whether a folder is one of Python's own: what lies there beside a package has nothing to do with it."""
    places = {Path(place).resolve() for place in sysconfig.get_paths().values()}
    return root is not None and Path(root) in places


def _imports_of(text: str, module: str, *, is_package: bool) -> Iterator[str]:
    """Every module that may be meant by an import statement, also inside functions."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            if origin:
                yield origin
                yield from (f"{origin}.{alias.name}" for alias in node.names if alias.name != "*")


def _without_comments(text: str) -> str:
    """Python code without comments, blank lines and spaces at the ends of lines."""
    lines = text.splitlines()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column]
    except (tokenize.TokenError, IndentationError):  # it was imported, so this cannot be; the text itself will do
        return text
    return "\n".join(line.rstrip() for line in lines if line.strip())


# ---------------------------------------------------------------------- classes of stored agents


def class_of_file(reference: str, allow: Iterable[str] = ()) -> Any:
    """The class that a stored file names: imported already, or of a module in `allow`.

    Raises
    ------
    ImportRefusedError
        If its module was not imported and is not in `allow`.
    """
    module, _, path = reference.partition(":")
    if any(module == name or module.startswith(f"{name}.") for name in allow):
        return load_object(reference)
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        # not getattr, which may import something too
        found = None if found is None else vars(found).get(part) if hasattr(found, "__dict__") else None
    if found is None:
        raise ImportRefusedError(
            "module",
            reference,
            hint=_how_to_allow(module),
            problem=f"it holds a {path} of the module {module}, and no file causes an import",
        )
    return found


def _how_to_allow(module: str) -> str:
    if module == "__main__":
        return "define the class in a module of its own, or use the script that defines it"
    return f"import {module} first, or, if you trust it, say allow=[{module!r}] (--allow {module} on the command line)"
