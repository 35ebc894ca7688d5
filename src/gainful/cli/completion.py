"""Names that a shell completes (`gainful --install-completion`); files are completed by the shell itself."""

from __future__ import annotations


def environments(incomplete: str) -> list[str]:
    """The environments that begin like the word typed so far."""
    from gainful.environments import registry

    return _beginning(incomplete, [*registry.names(), *registry.continuous_names()])


def agents(incomplete: str) -> list[str]:
    """The agents that begin like the word typed so far."""
    from gainful.agents import registry

    return _beginning(incomplete, [*registry.names(), *registry.continuous_names()])


def specs(incomplete: str) -> list[str]:
    """The shipped specs that begin like the word typed so far."""
    from gainful.experiments.spec import shipped

    return _beginning(incomplete, [name for name, _ in shipped()])


def environments_and_specs(incomplete: str) -> list[str]:
    """The environments and shipped specs that begin like the word typed so far."""
    return environments(incomplete) + specs(incomplete)


def devices(incomplete: str) -> list[str]:
    """Where runs can be made."""
    return _beginning(incomplete, ["cpu", "cuda", "auto"])


def ends_of_logs(incomplete: str) -> list[str]:
    """What to do where a log ends."""
    return _beginning(incomplete, ["auto", "drop", "restart"])


def _beginning(word: str, names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(word)]
