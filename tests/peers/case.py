"""What a case is."""

from dataclasses import dataclass, field

ALL = ("claude", "codex", "opencode", "gemini", "copilot", "qwen")


@dataclass
class Case:
    """One script of the fake API, and what must come of it."""

    name: str
    steps: list
    check: object = None
    agents: tuple = ("claude", "codex", "opencode")
    env: dict = field(default_factory=dict)
    # Whether the agent uses a subscription, where it tells that from a key.
    subscription: bool = False
    prepare: object = None
    kill: bool = False
    # How often it is run, one after the other, against the same script.
    times: int = 1
    # How long one run may take; none: as long as any.
    seconds: int | None = None
    # With the agent's hooks calling Backstop: `act(hooked)` runs the agent itself, as often as it needs to, and checks.
    act: object = None
