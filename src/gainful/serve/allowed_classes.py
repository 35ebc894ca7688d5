"""Which classes a request may name: gainful's own, and those of modules that `gainful serve --allow` names."""

from __future__ import annotations

from collections.abc import Sequence

from gainful.agents import registry
from gainful.errors import InvalidArgumentError
from gainful.user_modules import AGENT_GROUP, is_reference, registered


def check_class_allowed(name: str, allow: Sequence[str]) -> None:
    """Raise an InvalidArgumentError if making the agent of this name would import a module that is not in `allow`."""
    usual = registry.usual_name(name)
    if usual in registry.AGENTS or usual in registry.PARTITIONED:
        return
    reference = name if is_reference(name) else registered(AGENT_GROUP).get(name)
    if reference is None:
        return  # no agent at all, which is said elsewhere
    module = reference.partition(":")[0]
    if not any(module == one or module.startswith(f"{one}.") for one in allow):
        raise InvalidArgumentError(
            "config.agent",
            name,
            hint=f"start the service with --allow {module}, if you trust that module",
            problem=f"{name} is a class of the module {module}, and a request causes no import",
        )
