"""What `doctor` finds: which check, about what, a sentence with the figures, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Ailment:
    """One thing that is not as it should be."""

    check: str
    text: str
    hint: str
    subject: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)
