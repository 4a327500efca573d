"""What a chat policy is given and what it answers: the words that its back ends share."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["Call", "ChatPolicy", "Conversation", "Failure", "Reply", "key_of", "uniform"]


def key_of(*parts: object) -> int:
    """Returns 63 bits that name a stream of random numbers, by SHA-256 of the parts."""
    text = "\x1f".join(str(p) for p in parts)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big") >> 1


def uniform(*parts: object) -> float:
    """Returns a number in [0, 1) that the parts decide; a multiple of 2**-48, so that u * x < x for every x > 0."""
    return (key_of(*parts) >> 15) / 2.0**48


@dataclass(frozen=True)
class Call:
    """A call as the model wrote it. ``arguments`` is JSON text if it is well formed, and whatever the model wrote if not."""

    id: str
    name: str
    arguments: str

    @property
    def action(self) -> str:
        """The call as an environment takes it. Nothing is mended: what is malformed costs a call, and the agent sees why."""
        return f'{{"tool": {json.dumps(self.name, ensure_ascii=False)}, "args": {self.arguments}}}'

    def message(self) -> dict[str, Any]:
        """Returns it as an assistant message holds it.

        Servers read the arguments of earlier calls as JSON and refuse the whole conversation where they are not: those are
        wrapped, or the agent's mistake would look like one of the infrastructure.
        """
        try:
            sound = isinstance(json.loads(self.arguments), dict)
        except (ValueError, RecursionError):
            sound = False
        arguments = self.arguments if sound else json.dumps({"malformed": self.arguments})
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}}


@dataclass(frozen=True)
class Reply:
    """One answer of the model.

    Attributes:
        content: Its words.
        calls: The calls that it asks for, in order.
        prompt_tokens: Length of the whole prompt that it was given.
        completion_tokens: Tokens that it sampled.
        cut: Whether it was cut off at its token limit.
        estimated: Whether the two counts are estimates, because the server gave none.
    """

    content: str
    calls: tuple[Call, ...]
    prompt_tokens: int
    completion_tokens: int
    cut: bool = False
    estimated: bool = False

    def message(self) -> dict[str, Any]:
        """Returns it as an assistant message."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.calls:
            message["tool_calls"] = [c.message() for c in self.calls]
        return message


@dataclass(frozen=True)
class Failure:
    """No answer. ``limit`` is "tokens" where the conversation outgrew what the model takes; empty where the endpoint failed."""

    why: str
    limit: str = ""


@dataclass
class Conversation:
    """One episode as its policy sees it.

    Attributes:
        messages: System, user, assistant and tool messages so far, as the chat completions API has them.
        tools: The tools on offer, as JSON Schema functions.
        key: Names the random numbers of this episode.
        budget: Tokens that may follow the first prompt, the model's own and those of results; None for no limit.
        turns: Replies so far.
        prompt: Tokens of the first prompt.
        sampled: Tokens that the model sampled, all replies together.
        total: Length of the conversation after the last reply, in tokens.
        estimated: Whether a count in it is an estimate.
        state: The back end's own, kept from turn to turn.
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    key: int
    budget: int | None = None
    turns: int = 0
    prompt: int = 0
    sampled: int = 0
    total: int = 0
    estimated: bool = False
    state: Any = field(default=None, repr=False)

    @property
    def spent(self) -> int:
        """Tokens after the first prompt, up to the last reply."""
        return max(self.total - self.prompt, self.sampled)  # servers drop a model's reasoning from the prompts that follow

    def unseen(self) -> list[dict[str, Any]]:
        """Returns the messages since the last reply."""
        last = max((i for i, m in enumerate(self.messages) if m["role"] == "assistant"), default=-1)
        return self.messages[last + 1 :]

    def add(self, reply: Reply) -> None:
        """Appends a reply and counts it."""
        self.messages.append(reply.message())
        if not self.turns:
            self.prompt = reply.prompt_tokens
        self.turns += 1
        self.sampled += reply.completion_tokens
        self.total = reply.prompt_tokens + reply.completion_tokens
        self.estimated |= reply.estimated


class ChatPolicy(Protocol):
    """What plays an episode: ``Endpoint``, ``Local``, or anything with these two."""

    name: str
    """What the model is called where results are kept; a name or a hash."""

    def complete(self, conversations: list[Conversation]) -> list[Reply | Failure]:
        """Returns the next reply of each conversation, in order. It changes nothing of them but ``state``."""
        ...
