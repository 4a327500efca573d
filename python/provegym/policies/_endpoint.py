"""A model behind an OpenAI-compatible ``/chat/completions`` endpoint, over the standard library."""

from __future__ import annotations

import contextlib
import email.utils
import http.client
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from provegym.errors import BadInputError
from provegym.policies._conversation import Call, Conversation, Failure, Reply, key_of, uniform

__all__ = ["Endpoint"]

_MOST = 16 << 20  # bytes of an answer: far beyond any token limit, far below what hurts
_AGAIN = (408, 425, 429)  # and every status from 500
_SHOWN = 300  # characters of a server's text in an error
_BYTES_PER_TOKEN = 4  # for estimates: few texts have more
_OVERFLOW = re.compile(r"context[ _-](length|window|size)|maximum context|prompt is too long|too many (input )?tokens", re.I)


class _Refused(Failure):
    """A 4xx: the same request will never be answered."""


class Endpoint:
    """A model behind an OpenAI-compatible endpoint with tools.

    Connection errors, timeouts, broken answers, 408, 425, 429 and 5xx are tried again with exponential backoff; what still
    fails is infrastructure. Redirects are not followed and proxies of the environment not used: requests, and the key, go to
    the host that is named and nowhere else.

    Args:
        base_url: What stands before ``/chat/completions``, such as ``http://localhost:8000/v1``.
        model: The model's name there.
        api_key: Sent as a bearer token; never logged, shown or recorded.
        timeout_s: Seconds for one try, connection to last byte. (A stuck name server is beyond it.)
        retries: Further tries after the first.
        concurrency: Requests at a time.
        temperature: As the endpoint takes it; its own default if None.
        max_tokens: Tokens of one reply; the endpoint's default if None. A budget of the episode lowers it.
        max_tokens_field: What that limit is called: newer models of OpenAI want "max_completion_tokens".
        context: Length of the model's context in tokens, for servers that would silently drop what does not fit; one that
            refuses says so itself.
        seed: Names the random numbers: those of the pauses, and the ``seed`` of each request.
        send_seed: Whether requests have a ``seed``, which the episode's key and turn decide.
        backoff_s: Seconds before the second try, doubled for each further one, times a random number from 0.5 to 1.
        backoff_max_s: The longest of these pauses. A Retry-After that asks for more ends the tries.
        headers: More headers; their values are treated as the key is.
        extra: More members of the request, such as ``{"top_p": 0.9}``.

    Raises:
        BadInputError: If an argument is malformed.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        *,
        timeout_s: float = 120.0,
        retries: int = 5,
        concurrency: int = 16,
        temperature: float | None = None,
        max_tokens: int | None = None,
        max_tokens_field: str = "max_tokens",
        context: int | None = None,
        seed: int = 0,
        send_seed: bool = True,
        backoff_s: float = 0.5,
        backoff_max_s: float = 60.0,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Checks the arguments; nothing is connected yet."""
        url = urlsplit(base_url)
        if url.username is not None or url.password is not None:
            raise BadInputError("base_url holds a user or password: give api_key or headers instead")
        try:
            port = url.port
        except ValueError as err:
            raise BadInputError(f"base_url {base_url!r}: {err}") from err
        if url.scheme not in ("http", "https") or not url.hostname or re.search(r"[\x00-\x20\x7f]", base_url):
            raise BadInputError(f"base_url is http:// or https://, a host and a path such as /v1, not {base_url!r}")
        if url.path.rstrip("/").endswith("/chat/completions"):
            raise BadInputError("base_url is what stands before /chat/completions: leave that out")
        for what, number, least in (("timeout_s", timeout_s, 1e-3), ("retries", retries, 0), ("concurrency", concurrency, 1)):
            if not number >= least:
                raise BadInputError(f"{what} is a number from {least}, not {number!r}")
        self.name = self.model = model
        self.base_url = base_url
        self._host, self._port, self._tls = url.hostname, port, url.scheme == "https"
        self._path = url.path.rstrip("/") + "/chat/completions" + (f"?{url.query}" if url.query else "")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", "Connection": "close"}
        own = dict(headers or {})
        if api_key is not None:
            own["Authorization"] = f"Bearer {api_key}"
        for name, value in own.items():  # checked here: http.client would show the value in its error
            if not re.fullmatch(r"[!-~]+", name) or not re.fullmatch(r"[ -~]+", value) or value != value.strip():
                raise BadInputError(f"the value of header {name!r} is not printable ASCII: is there a line break in the key?")
        self._headers |= own
        secrets = [*(headers or {}).values(), *([api_key] if api_key else [])]
        self._secrets = sorted(secrets, key=len, reverse=True)
        self.timeout_s, self.retries, self.concurrency = timeout_s, retries, concurrency
        self.temperature, self.max_tokens, self.max_tokens_field = temperature, max_tokens, max_tokens_field
        self.context, self.seed, self.send_seed = context, seed, send_seed
        self.backoff_s, self.backoff_max_s, self.extra = backoff_s, backoff_max_s, dict(extra or {})
        self._answered = False
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._live: set[socket.socket] = set()  # connections of tries under way; under _lock

    def __repr__(self) -> str:
        """Returns url and model, without the key."""
        return f"Endpoint({self.base_url!r}, {self.model!r})"

    def complete(self, conversations: list[Conversation]) -> list[Reply | Failure]:
        """Returns the next reply of each conversation.

        Raises:
            BadInputError: If the endpoint refuses (4xx) and has not answered any request yet: url, key or model are wrong.
                Once it has answered, a refusal is of one conversation alone, and a failure.
        """
        if not conversations:
            return []
        self._stopped.clear()
        with ThreadPoolExecutor(min(self.concurrency, len(conversations)), thread_name_prefix="chat") as pool:
            try:
                answers = list(pool.map(self._ask, conversations))
            except BaseException:  # Ctrl-C: do not wait for timeouts
                self._abort()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        self._answered = self._answered or any(isinstance(a, Reply) or a.limit for a in answers)
        if not self._answered:
            for a in answers:
                if isinstance(a, _Refused):
                    raise BadInputError(f"{self!r} {a.why}; check base_url, model and key")
        return answers

    def _abort(self) -> None:
        self._stopped.set()
        with self._lock:
            for s in self._live:
                _shut(s)

    def _ask(self, c: Conversation) -> Reply | Failure:
        size = sum(len(m["content"].encode()) for m in c.unseen()) // _BYTES_PER_TOKEN
        if c.budget is not None and c.spent >= c.budget:
            return Failure(f"the budget of {c.budget} tokens is spent", "tokens")
        if self.context is not None and c.total + size >= self.context:
            return Failure(f"the conversation outgrew the context of {self.context} tokens", "tokens")
        body = json.dumps(self._request(c)).encode()
        why = ""
        for attempt in range(1 + self.retries):
            asked: float | None = None
            try:
                status, headers, data = self._post(body)
            except ssl.SSLCertVerificationError as err:
                return _Refused(f"has a certificate that cannot be verified ({err.verify_message})")
            except (OSError, http.client.HTTPException) as err:
                why = self._shown(f"{type(err).__name__}: {err}")
            else:
                if status == 200:
                    try:
                        return _read(data, c)
                    except (ValueError, RecursionError) as err:
                        why = self._shown(f"an answer that is no chat completion ({err})")
                else:
                    why = f"HTTP {status}: {self._shown(data.decode('utf-8', 'replace'))}"
                    if status == 413 or (status in (400, 422, 500) and _OVERFLOW.search(data.decode("utf-8", "replace"))):
                        return Failure(f"the conversation outgrew the model's context ({why})", "tokens")
                    if status < 500 and status not in _AGAIN:
                        return _Refused(f"refuses the request ({why})")
                    asked = _retry_after(headers)
            if attempt == self.retries:
                break
            pause = min(self.backoff_max_s, self.backoff_s * 2**attempt)
            pause *= 0.5 + 0.5 * uniform(self.seed, "pause", c.key, c.turns, attempt)
            if asked is not None and asked > self.backoff_max_s:
                why += f"; it asks to wait {asked:.0f} s"
                break
            if self._stopped.wait(max(pause, asked or 0.0)):
                break
        return Failure(f"no answer from the endpoint in {attempt + 1} {'try' if attempt == 0 else 'tries'}: {why}")

    def _request(self, c: Conversation) -> dict[str, Any]:
        messages = [{k: v for k, v in m.items() if k != "name" or m["role"] != "tool"} for m in c.messages]
        asked: dict[str, Any] = {"model": self.model, "messages": messages}
        if c.tools:
            asked["tools"] = c.tools
        if self.temperature is not None:
            asked["temperature"] = self.temperature
        rooms = [r for r in (self.max_tokens, None if c.budget is None else c.budget - c.spent) if r is not None]
        if rooms:
            asked[self.max_tokens_field] = min(rooms)
        if self.send_seed:
            asked["seed"] = key_of(self.seed, "sample", c.key, c.turns) >> 32  # 31 bits: servers keep it in an int
        return {**asked, **self.extra}

    def _post(self, body: bytes) -> tuple[int, http.client.HTTPMessage, bytes]:
        """One try. The time limit is of the whole: a server that sends a byte now and then does not stretch it."""
        deadline = time.monotonic() + self.timeout_s
        connection: http.client.HTTPConnection
        if self._tls:
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=self.timeout_s, context=context)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self.timeout_s)
        late = threading.Event()
        watch: threading.Timer | None = None
        s: socket.socket | None = None
        try:
            connection.connect()
            s = connection.sock
            with self._lock:
                self._live.add(s)
            if self._stopped.is_set():
                raise ConnectionAbortedError("stopped")

            def end(s: socket.socket = s) -> None:
                late.set()
                _shut(s)

            watch = threading.Timer(max(0.0, deadline - time.monotonic()), end)
            watch.daemon = True
            watch.start()
            connection.request("POST", self._path, body, self._headers)
            response = connection.getresponse()
            data = response.read(_MOST + 1)
            if len(data) > _MOST:
                raise http.client.HTTPException(f"an answer of more than {_MOST >> 20} MiB")
            if response.length and not late.is_set():
                raise http.client.IncompleteRead(b"", response.length)
            if late.is_set():
                raise TimeoutError
            return response.status, response.headers, data
        except (OSError, http.client.HTTPException) as err:
            if late.is_set() or isinstance(err, TimeoutError):
                raise TimeoutError(f"no answer within {self.timeout_s:g} s") from err
            raise
        finally:
            if watch:
                watch.cancel()
            if s:
                with self._lock:
                    self._live.discard(s)
            connection.close()

    def _shown(self, text: str) -> str:
        """Returns foreign text on one line, cut, and without the key, which servers echo."""
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        text = " ".join(text.split())
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _shut(s: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it was closed meanwhile
        socket.socket.shutdown(s, socket.SHUT_RDWR)  # not SSLSocket's, which would take the reader's state from under it


def _retry_after(headers: http.client.HTTPMessage) -> float | None:
    """Returns the seconds that a server asks to wait: a number of them, or a date (RFC 9110, 10.2.3)."""
    value = (headers.get("Retry-After") or "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", value):
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _clean(value: Any) -> str:
    """Returns text without lone surrogates, which JSON can spell and UTF-8 cannot."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _read(data: bytes, c: Conversation) -> Reply | Failure:
    """Reads a chat completion.

    Raises:
        ValueError: If it is none.
    """
    answer = json.loads(data)
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message, finish = choice.get("message"), choice.get("finish_reason")
    if not isinstance(message, dict):
        raise ValueError("it has no choices[0].message: " + json.dumps(answer)[:120])
    if finish == "content_filter":
        return Failure("the endpoint filtered the model's answer out")
    content = message.get("content")
    if isinstance(content, list):  # parts
        content = "".join(_clean(p.get("text")) for p in content if isinstance(p, dict))
    asked = message.get("tool_calls") or []
    if not isinstance(asked, list) or not all(isinstance(x, dict) for x in asked):
        raise ValueError("tool_calls is no list of objects")
    calls = tuple(_call(x, f"call_{c.turns}_{i}") for i, x in enumerate(asked))
    usage = answer.get("usage")
    prompt, sampled = (usage.get(k) if isinstance(usage, dict) else None for k in ("prompt_tokens", "completion_tokens"))
    if isinstance(prompt, int) and isinstance(sampled, int) and min(prompt, sampled) >= 0:
        return Reply(_clean(content), calls, prompt, sampled, finish == "length")
    prompt = len(json.dumps([c.messages, c.tools])) // _BYTES_PER_TOKEN
    sampled = (len(_clean(content)) + sum(len(x.name) + len(x.arguments) for x in calls)) // _BYTES_PER_TOKEN
    return Reply(_clean(content), calls, prompt, sampled, finish == "length", estimated=True)


def _call(asked: dict[str, Any], own: str) -> Call:
    function = asked.get("function")
    function = function if isinstance(function, dict) else asked
    arguments = function.get("arguments")
    if arguments is None or arguments == "":  # how some servers spell a call without arguments
        arguments = "{}"
    text = _clean(arguments) if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return Call(_clean(asked.get("id")) or own, _clean(function.get("name")), _clean(text))
