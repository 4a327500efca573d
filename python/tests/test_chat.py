"""A language model as policy: against a scripted endpoint on this machine. Nothing here leaves the loopback."""

from __future__ import annotations

import http.server
import ipaddress
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import provegym
from provegym import prove
from provegym import trace as traces
from provegym.cli import main
from provegym.env import Env
from provegym.errors import BadInputError, EndpointError, HeldOutError, UnknownNameError
from provegym.policies import chat
from provegym.policies._conversation import uniform

KEY = "sk-0123456789abcdefSECRET"
FAST: dict[str, Any] = {"backoff_s": 0.001, "retries": 2, "timeout_s": 20}
Call = tuple[str, Any]


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to anywhere else fails the test."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            assert ipaddress.ip_address(address[0]).is_loopback, address
        real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


# ---------------------------------------------------------------------- the scripted endpoint


class Raw(bytes):
    """A body to send as it is, after which the connection is closed."""


Answer = dict[str, Any] | tuple[int, dict[str, str], bytes] | Raw


class Server:
    """An endpoint whose answers a function of (request, its number) decides."""

    def __init__(self, script: Callable[[dict[str, Any], int], Answer]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    outer.requests.append(asked)
                    outer.headers.append(dict(self.headers))
                    outer.paths.append(self.path)
                    n = len(outer.requests) - 1
                answer = script(asked, n)
                try:
                    if isinstance(answer, Raw):
                        self.wfile.write(answer)
                        return
                    status, headers, body = (200, {}, json.dumps(answer).encode()) if isinstance(answer, dict) else answer
                    self.send_response(status)
                    for k, v in ({"Content-Length": str(len(body))} | headers).items():
                        self.send_header(k, v)
                    self.end_headers()
                    self.wfile.write(body)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # it had waited too long

            def log_message(self, *args: Any) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[dict[str, Any], int], Answer]], Server]]:
    servers: list[Server] = []

    def start(script: Callable[[dict[str, Any], int], Answer]) -> Server:
        servers.append(Server(script))
        return servers[-1]

    yield start
    for s in servers:
        s.close()


def says(*calls: Call, words: str | None = None, finish: str | None = None, usage: tuple[int, int] | None = (100, 10)) -> Any:
    """A chat completion. Arguments that are text are sent as they are."""
    message: dict[str, Any] = {"role": "assistant", "content": words}
    if calls:
        message["tool_calls"] = [
            {"id": f"c{i}", "type": "function", "function": {"name": fn, "arguments": as_text(a)}}
            for i, (fn, a) in enumerate(calls)
        ]
    answer: dict[str, Any] = {"choices": [{"index": 0, "message": message, "finish_reason": finish or "stop"}]}
    if usage:
        answer["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    return answer


def as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def turn(asked: dict[str, Any]) -> int:
    return sum(m["role"] == "assistant" for m in asked["messages"])


def instruction(asked: dict[str, Any]) -> str:
    return str(next(m["content"] for m in asked["messages"] if m["role"] == "user"))


def last(asked: dict[str, Any]) -> str:
    return str(asked["messages"][-1]["content"])


class Oracle:
    """The oracle's calls of some tasks, by instruction."""

    def __init__(self, tasks: list[str], path: Path) -> None:
        self.path, self.tasks, self.plans = path, tasks, dict[str, list[Call]]()
        self.results = self.learn(tasks)

    def learn(self, tasks: list[str], **how: Any) -> list[dict[str, Any]]:
        store = self.path / f"oracle{len(self.plans)}.db"
        with provegym.Trace(store, pack=tasks[0].partition("@")[0]) as trace:
            results = provegym.rollout("oracle", tasks, trace=trace, **how)
        for row in traces.query(store, "episodes", limit=5000):
            calls = [json.loads(s["text"]) for s in traces.query(store, "steps", episode=row["id"])]
            text = provegym.task(row["task"])["instruction"]
            self.plans[text] = [(c["tool"], c.get("args", {})) for c in calls]
        return results

    def __call__(self, asked: dict[str, Any], n: int = 0) -> Any:
        return says(self.plans[instruction(asked)][turn(asked)])


@pytest.fixture
def oracle(seed: int, tmp_path: Path) -> Oracle:
    return Oracle(provegym.sample("tooluse", 12, seed=seed), tmp_path)


# ---------------------------------------------------------------------- playing


def test_the_oracles_calls_pass(serve: Any, oracle: Oracle) -> None:
    server = serve(oracle)
    done: list[int] = []
    results = chat.play(
        chat.Endpoint(server.url, "m", KEY, **FAST), oracle.tasks, batch=5, system="Be brief.", progress=done.append
    )
    assert [r["digest"] for r in results] == [r["digest"] for r in oracle.results]
    same = ("task", "outcome", "limit", "success", "components", "calls", "why")
    assert [[r[k] for k in same] for r in results] == [[r[k] for k in same] for r in oracle.results]
    assert all(r["ended"] == "" and r["turns"] == r["calls"] for r in results)
    assert done[-1] == len(results)
    assert set(server.paths) == {"/v1/chat/completions"}
    assert {h["Authorization"] for h in server.headers} == {f"Bearer {KEY}"}
    first = next(a for a in server.requests if turn(a) == 0)
    assert [m["role"] for m in first["messages"]] == ["system", "user"]
    with Env(pack="tooluse") as env:
        env.reset(options={"task": next(t for t in oracle.tasks if provegym.task(t)["instruction"] == instruction(first))})
        assert first["tools"] == env.tools


def test_parallel_calls_are_taken_in_order(serve: Any, oracle: Oracle) -> None:
    server = serve(lambda asked, n: says(*oracle.plans[instruction(asked)]))
    results = chat.play(chat.Endpoint(server.url, "m", **FAST), oracle.tasks)
    assert [r["digest"] for r in results] == [r["digest"] for r in oracle.results]
    assert all(r["success"] and r["turns"] == 1 for r in results)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (("get_order", '{"order": '), "bad_call"),
        (("get_order", '{"order": "o-1"}, "tool": "finish"'), "bad_call"),
        (("get_order", '["o-1"]'), "bad_call"),
        (("get_order", '"\\ud800"'), "bad_call"),
        (("now", '{"colour": "žluť 🌲"}'), "bad_argument"),
        (("get_order", '{"order": "' + "x" * 70_000 + '"}'), "bad_call"),
        (("fly", "{}"), "unknown_tool"),
        (('"}, "tool": "', ""), "unknown_tool"),
    ],
)
def test_a_malformed_call_costs_a_call_and_the_agent_sees_why(serve: Any, oracle: Oracle, call: Call, code: str) -> None:
    def script(asked: dict[str, Any], n: int) -> Any:
        if turn(asked) == 0:
            return says(call)
        return says(oracle.plans[instruction(asked)][turn(asked) - 1])

    server = serve(script)
    results = chat.play(chat.Endpoint(server.url, "m", **FAST), oracle.tasks[:4])
    for r, plain in zip(results, oracle.results, strict=False):
        assert r["success"] and r["calls"] == plain["calls"] + 1
    second = [a for a in server.requests if turn(a) == 1]
    assert len(second) == 4
    for asked in second:
        assert json.loads(last(asked))["error"]["code"] == code
        assistant, result = asked["messages"][-2:]
        assert result["tool_call_id"] == assistant["tool_calls"][0]["id"] and "name" not in result
        # Servers read these arguments to render them: they must be an object whatever the model wrote.
        assert isinstance(json.loads(assistant["tool_calls"][0]["function"]["arguments"]), dict)


def test_an_answer_in_words_ends_the_episode(serve: Any, oracle: Oracle) -> None:
    server = serve(lambda asked, n: says(words="I have done it all, outcome done, code fern. ✅"))
    for r in chat.play(chat.Endpoint(server.url, "m", **FAST), oracle.tasks[:3]):
        assert (r["outcome"], r["limit"], r["ended"], r["success"], r["calls"]) == ("truncated", "tokens", "words", False, 0)
        assert r["tokens"] == {"prompt": 100, "sampled": 10, "shown": 0, "estimated": False}


def test_token_limits_truncate(serve: Any, oracle: Oracle) -> None:
    def growing(asked: dict[str, Any], n: int) -> Any:
        return says(oracle.plans[instruction(asked)][turn(asked)], usage=(100 + 50 * turn(asked), 10))

    task = max(zip(oracle.results, oracle.tasks, strict=True), key=lambda x: x[0]["calls"])[1]
    server = serve(growing)
    (r,) = chat.play(chat.Endpoint(server.url, "m", max_tokens=40, **FAST), [task], max_tokens=70)
    assert (r["outcome"], r["limit"], r["ended"], r["calls"]) == ("truncated", "tokens", "tokens", 2)
    assert r["tokens"] == {"prompt": 100, "sampled": 30, "shown": 80, "estimated": False}
    assert [a["max_tokens"] for a in server.requests] == [40, 40, 10]

    (r,) = chat.play(chat.Endpoint(serve(growing).url, "m", **FAST), [task], max_turns=1)
    assert (r["outcome"], r["limit"], r["ended"], r["calls"]) == ("truncated", "calls", "turns", 1)

    (r,) = chat.play(chat.Endpoint(serve(lambda a, n: says(("get_order", '{"ord'), finish="length")).url, "m", **FAST), [task])
    assert (r["outcome"], r["limit"], r["ended"], r["calls"]) == ("truncated", "tokens", "tokens", 0)

    server = serve(lambda asked, n: says(oracle.plans[instruction(asked)][turn(asked)], usage=(100 + 60_000 * turn(asked), 10)))
    (r,) = chat.play(chat.Endpoint(server.url, "m", context=60_110, **FAST), [task])
    assert (r["outcome"], r["limit"], r["ended"]) == ("truncated", "tokens", "tokens")
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": {"code": "context_length_exceeded", "message": "too long"}}',
        b'{"message": "This model\'s maximum context length is 4096 tokens."}',
        b'{"error": {"type": "exceed_context_size_error"}}',
    ],
)
def test_a_conversation_that_outgrows_the_model_is_truncated(serve: Any, oracle: Oracle, body: bytes) -> None:
    def script(asked: dict[str, Any], n: int) -> Any:
        return (400, {}, body) if turn(asked) == 2 else oracle(asked)

    for r in chat.play(chat.Endpoint(serve(script).url, "m", **FAST), oracle.tasks[:3]):
        assert (r["outcome"], r["limit"], r["ended"], r["calls"], r["why"]) == ("truncated", "tokens", "tokens", 2, "")


def test_counts_are_estimated_where_the_server_gives_none(serve: Any, oracle: Oracle) -> None:
    server = serve(lambda asked, n: says(*oracle.plans[instruction(asked)], usage=None))
    (r,) = chat.play(chat.Endpoint(server.url, "m", **FAST), oracle.tasks[:1])
    assert r["success"] and r["tokens"]["estimated"] and r["tokens"]["prompt"] > 500 and r["tokens"]["sampled"] > 10


# ---------------------------------------------------------------------- infrastructure


def chunk(body: bytes, whole: bool) -> bytes:
    return b"%x\r\n%s\r\n%s" % (len(body), body, b"0\r\n\r\n" if whole else b"")


GOOD = json.dumps(says(words="x")).encode()
FAULTS: dict[str, Any] = {
    "500": (500, {}, b"oops"),
    "429": (429, {"Retry-After": "0"}, b"slow down"),
    "429 until a date": (429, {"Retry-After": "Fri, 01 Jan 2021 00:00:00 GMT"}, b"slow down"),
    "cut body": (200, {"Content-Length": str(len(GOOD))}, GOOD[:-9]),
    "cut body that parses": (200, {"Content-Length": str(len(GOOD) + 9)}, GOOD),
    "cut chunks": Raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(GOOD, whole=False)),
    "no HTTP": Raw(b"hello\r\n\r\n"),
    "nothing": Raw(b""),
    "no JSON": (200, {}, b"<html>gateway</html>"),
    "not UTF-8": (200, {}, b'{"choices": "\xff"}'),
    "no choices": {"error": "overloaded"},
    "null message": {"choices": [{"message": None}]},
    "odd calls": {"choices": [{"message": {"tool_calls": ["x"]}}]},
    "deep": (200, {}, b"[" * 200_000),
    "filtered": says(words="", finish="content_filter"),
    "huge": (200, {}, b" " * (17 << 20)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_tried_again_or_loses_one_episode_alone(serve: Any, oracle: Oracle, name: str) -> None:
    unlucky = provegym.task(oracle.tasks[1])["instruction"]
    for lasting in (False, True):
        if name == "filtered" and not lasting:  # the model's own doing: not tried again
            continue
        hit: list[int] = []

        def script(asked: dict[str, Any], n: int, lasting: bool = lasting, hit: list[int] = hit) -> Any:
            if instruction(asked) == unlucky and turn(asked) == 1 and (lasting or not hit):
                hit.append(n)
                return FAULTS[name]
            return oracle(asked)

        results = chat.play(chat.Endpoint(serve(script).url, "m", **FAST), oracle.tasks[:4], batch=4)
        assert [r["success"] for r in results] == [True, not lasting, True, True], results[1]["why"]
        assert len(hit) == (1 if not lasting or name == "filtered" else 3)
        if lasting:
            r = results[1]
            assert (r["outcome"], r["limit"], r["ended"], r["calls"]) == ("invalid", "", "failure", 1)
            assert r["why"] and ("in 3 tries" in r["why"] or name == "filtered")


def test_a_server_that_stalls_or_drips_is_left_in_time(serve: Any, oracle: Oracle) -> None:
    went = threading.Event()

    def stall(asked: dict[str, Any], n: int) -> Any:
        went.wait(20)
        return says(words="late")

    began = time.monotonic()
    (r,) = chat.play(chat.Endpoint(serve(stall).url, "m", timeout_s=0.2, retries=1, backoff_s=0.001), oracle.tasks[:1])
    assert r["outcome"] == "invalid" and "no answer within 0.2 s" in r["why"] and "in 2 tries" in r["why"]
    went.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            s, _ = listener.accept()
            with s:
                try:
                    s.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                    for _ in range(200):  # each byte comes well within the limit
                        s.sendall(b"x")
                        time.sleep(0.1)
                except OSError:
                    return

        threading.Thread(target=drip, daemon=True).start()
        model = chat.Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}", "m", timeout_s=0.5, retries=0)
        (r,) = chat.play(model, oracle.tasks[:1])
    assert r["outcome"] == "invalid" and "no answer within 0.5 s" in r["why"]
    assert time.monotonic() - began < 15


def test_an_interrupt_waits_for_no_answer(serve: Any, oracle: Oracle) -> None:
    went = threading.Event()

    def stall(asked: dict[str, Any], n: int) -> Any:
        if n == 2:
            signal.pthread_kill(main_thread, signal.SIGINT)
        went.wait(30)
        return says(words="late")

    main_thread = threading.get_ident()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        chat.play(chat.Endpoint(serve(stall).url, "m", timeout_s=30), oracle.tasks, batch=3)
    assert time.monotonic() - began < 10 and not [t for t in threading.enumerate() if t.name.startswith("chat")]
    went.set()


def test_retry_after_is_kept(serve: Any, oracle: Oracle) -> None:
    at: list[float] = []

    def script(asked: dict[str, Any], n: int) -> Any:
        at.append(time.monotonic())
        return (429, {"Retry-After": "1"}, b"") if n == 0 else says(words="x")

    chat.play(chat.Endpoint(serve(script).url, "m", **FAST), oracle.tasks[:1])
    assert len(at) == 2 and at[1] - at[0] >= 1.0

    server = serve(lambda asked, n: (503, {"Retry-After": "86400"}, b"tomorrow"))
    (r,) = chat.play(chat.Endpoint(server.url, "m", **FAST), oracle.tasks[:1])
    assert r["outcome"] == "invalid" and "asks to wait 86400 s" in r["why"] and len(server.requests) == 1


def test_an_endpoint_that_is_not_there(oracle: Oracle) -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))  # nobody else's, and it does not listen
        model = chat.Endpoint(f"http://127.0.0.1:{s.getsockname()[1]}/v1", "m", **FAST)
        results = chat.play(model, oracle.tasks)
        assert {(r["outcome"], r["ended"]) for r in results} == {("invalid", "failure")}
        assert all("ConnectionRefusedError" in r["why"] for r in results)
        with pytest.raises(EndpointError, match=r"last 3 episodes were lost.*ConnectionRefusedError"):
            chat.play(model, oracle.tasks, batch=1, give_up=3)


def test_what_the_endpoint_refuses(serve: Any, oracle: Oracle) -> None:
    server = serve(lambda asked, n: (401, {}, b'{"error": "no such key"}'))
    with pytest.raises(BadInputError, match=r"HTTP 401.*no such key.*check base_url, model and key"):
        chat.play(chat.Endpoint(server.url, "m", **FAST), oracle.tasks, batch=4)
    assert len(server.requests) == 4  # no try again, no next batch
    with pytest.raises(BadInputError, match="HTTP 307"):
        moved = serve(lambda asked, n: (307, {"Location": server.url}, b""))
        chat.play(chat.Endpoint(moved.url, "m", KEY, **FAST), oracle.tasks)
    assert len(server.requests) == 4

    def script(asked: dict[str, Any], n: int) -> Any:  # once it has answered, a refusal is of one conversation
        return (400, {}, b"bad template") if instruction(asked) == odd and turn(asked) else oracle(asked)

    odd = provegym.task(oracle.tasks[2])["instruction"]
    results = chat.play(chat.Endpoint(serve(script).url, "m", **FAST), oracle.tasks[:4])
    assert [r["outcome"] for r in results] == ["scored", "scored", "invalid", "scored"]
    assert "HTTP 400: bad template" in results[2]["why"]


def test_the_key_is_nowhere(
    serve: Any, oracle: Oracle, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = f'{{"error": "{"x" * 270} key {KEY} and {KEY[::-1]} are wrong"}}'.encode()
    store = tmp_path / "t.db"

    def script(asked: dict[str, Any], n: int) -> Any:
        return (500, {}, echo) if turn(asked) else oracle(asked)

    model = chat.Endpoint(serve(script).url, "m", KEY, headers={"X-Other": KEY[::-1]}, **FAST)
    results = chat.play(model, oracle.tasks[:2], trace=store)
    traces.Trace.shared(store, "tooluse").flush()
    with pytest.raises(BadInputError) as err:
        chat.play(chat.Endpoint(serve(lambda a, n: (401, {}, echo)).url, "m", KEY, **FAST), oracle.tasks[:1])
    monkeypatch.setenv("SOME_KEY", KEY)
    url = serve(lambda a, n: (403, {}, echo)).url
    assert main(["run", "tooluse", "-n", "1", "--endpoint", url, "--model", "m", "--key-variable", "SOME_KEY"]) == 2
    told = capfd.readouterr()
    where = [json.dumps(results), repr(model), str(err.value), told.out, told.err]
    files = [p.read_bytes().decode("latin-1") for p in tmp_path.iterdir()]
    assert all("[secret]" in r["why"] for r in results) and "403" in told.err
    for secret in (KEY, KEY[::-1], KEY[:12]):
        assert not [w for w in where + files if secret in w]
    for bad in (KEY + "\n", "ž" + KEY):
        with pytest.raises(BadInputError) as err:
            chat.Endpoint("http://127.0.0.1/v1", "m", bad)
        assert KEY not in str(err.value)


@pytest.mark.parametrize(
    "url",
    ["h:80", "ftp://x/v1", "http://", "http://u:p@h/v1", "http://h:port/v1", "http://h/v1/chat/completions", "http://h/a b"],
)
def test_a_bad_url_is_refused(url: str) -> None:
    with pytest.raises(BadInputError, match="base_url"):
        chat.Endpoint(url, "m")


def test_bad_tasks_are_refused_before_any_is_played(serve: Any, oracle: Oracle) -> None:
    server = serve(oracle)
    model = chat.Endpoint(server.url, "m", **FAST)
    with pytest.raises(UnknownNameError):
        chat.play(model, [*oracle.tasks, "tooluse@2/nope#seed=1"], batch=2)
    split = provegym.Split.freeze({"pack": "tooluse", "families": {"for-each": "test"}})
    with pytest.raises(HeldOutError):
        chat.play(model, ["tooluse@2/branch#seed=1", "tooluse@2/for-each#seed=1"], mode="train", split=split, batch=1)
    with pytest.raises(BadInputError, match="12 tasks, 1 labels"):
        chat.play(model, oracle.tasks, labels=[{}])
    assert chat.play(model, []) == [] and not server.requests


# ---------------------------------------------------------------------- noise


def test_noise_depends_on_the_episode_alone(serve: Any, oracle: Oracle) -> None:
    def seeds(batch: int, tasks: list[str], **how: Any) -> dict[tuple[str, int], list[int]]:
        server = serve(oracle)
        chat.play(chat.Endpoint(server.url, "m", concurrency=3, **FAST), tasks, batch=batch, **how)
        out: dict[tuple[str, int], list[int]] = {}
        for a in server.requests:
            out.setdefault((instruction(a), turn(a)), []).append(a["seed"])
        return {k: sorted(v) for k, v in out.items()}

    one = seeds(1, oracle.tasks[:4])
    assert one == seeds(4, oracle.tasks[:4]) == seeds(2, oracle.tasks[3::-1])
    assert len({v[0] for v in one.values()}) == len(one) and all(0 <= v[0] < 2**31 for v in one.values())
    assert one != seeds(4, oracle.tasks[:4], noise=1)
    twice = seeds(4, oracle.tasks[:1] * 2)
    assert all(len(set(v)) == 2 for v in twice.values())


def test_uniform_is_uniform() -> None:
    u = [uniform(7, i) for i in range(20_000)]
    assert all(0 <= x < 1 for x in u) and abs(sum(u) / len(u) - 0.5) < 0.01
    assert max(abs(sum(x < q for x in u) / len(u) - q) for q in (0.1, 0.25, 0.5, 0.9)) < 0.015


# ---------------------------------------------------------------------- Break and Prove


class Scripted:
    """A policy without an endpoint: the oracle's calls, words where it has none, failures where it is told."""

    def __init__(self, name: str, oracle: Oracle, *, fails: int = 0, mute: bool = False) -> None:
        self.name, self.oracle, self.fails, self.mute, self.played = name, oracle, fails, mute, 0

    def complete(self, conversations: list[chat.Conversation]) -> list[chat.Reply | chat.Failure]:
        out: list[chat.Reply | chat.Failure] = []
        for c in conversations:
            self.played += not c.turns
            plan = self.oracle.plans.get(c.messages[0]["content"])
            if self.fails and self.played > self.fails:
                out.append(chat.Failure("down"))
            elif plan is None or self.mute:
                out.append(chat.Reply("?", (), 10, 1))
            else:
                name, args = plan[c.turns]
                out.append(chat.Reply("", (chat.Call("i", name, json.dumps(args)),), 10 + c.turns, 1))
        return out


def test_probe_finds_what_was_planted(oracle: Oracle, seed: int) -> None:
    split = provegym.Split.freeze({"pack": "tooluse"})
    labels: list[dict[str, Any]] = []

    class Spy:  # teaches the policy the tasks that are asked for, but for the planted weakness
        def __init__(self) -> None:
            self.search = provegym.Breaker("tooluse", split=split, key=seed, families=["resolve-act"], budget=400)

        def ask(self, n: int) -> Any:
            probes = self.search.ask(n)
            if easy := [p.task for p in probes if "near_duplicates=16" not in p.task]:
                oracle.learn(easy)
            return probes

        def tell(self, results: Any) -> bool:
            labels.extend(results)
            return self.search.tell(results)

        def report(self) -> Any:
            return self.search.report()

    policy = Scripted("m", oracle)
    done: list[int] = []
    spy: Any = Spy()
    report = chat.probe(policy, spy, split=split, seed=seed, progress=done.append)
    confirmed = [c for c in report["causes"] if c["status"] == "confirmed"]
    assert [[(x["factor"], x["level"]) for x in c["settings"]] for c in confirmed] == [[("near_duplicates", "16")]]
    assert done[-1] == policy.played == len(labels) and not any(r["lost"] for r in labels)
    assert {r["mode"] for r in labels if r["failed"]} == {"out of tokens"}


def test_look_judges_and_goes_on_where_it_stopped(oracle: Oracle, tmp_path: Path, seed: int) -> None:
    split = provegym.Split.freeze({"pack": "tooluse", "families": {"for-each": "test"}})
    draft = {
        "pack": "tooluse@2",
        "split_hash": split.hash,
        "base": {"rule": "mute"},
        "looks": [{"id": "final", "weight": 1.0, "checkpoint": "the oracle"}],
        "conditions": [{"id": "tooluse@2/for-each?fanout=1", "tier": "held-out-family", "G": 20, "psi0": 0.3}],
        "budget": {"train": 0, "break": 0, "monitor": 0, "baseline": 0},
    }
    plan = prove.freeze(draft, key=seed, split=split)
    oracle.learn([s["task"] for s in prove.tasks(plan, "final", key=seed)], mode="test", split=split)
    base, better = Scripted("base", oracle, mute=True), Scripted("better", oracle)
    run = {"split_hash": split.hash, "plan_hash": plan["hash"]}
    how: dict[str, Any] = {"key": seed, "split": split, "batch": 4}
    with provegym.Trace(tmp_path / "other.db", pack="tooluse") as other, pytest.raises(BadInputError, match="plan_hash"):
        chat.look(base, better, plan, "final", trace=other, **how)

    store = tmp_path / "look.db"
    with provegym.Trace(store, run, pack="tooluse") as trace:
        down = Scripted("better", oracle, fails=8)
        with pytest.raises(EndpointError, match="down"):
            chat.look(base, down, plan, "final", trace=trace, give_up=4, **how)
        trace.flush()
    filled = [r for r in traces.query(store, "slots", plan=plan["hash"], look="final") if r["arm"] == "checkpoint"]
    lost = sum(r["outcome"] == "invalid" for r in filled)
    assert base.played == 20 and len(filled) < 20 and 4 <= lost < 4 + how["batch"], filled
    with provegym.Trace(store, run, pack="tooluse", resume=0) as trace:
        result = chat.look(base, better, plan, "final", trace=trace, **how)
        assert base.played == 20 and better.played == 20 - len(filled)
        idle = Scripted("base", oracle, fails=-1), Scripted("better", oracle, fails=-1)
        again = chat.look(*idle, plan, "final", trace=trace, **how)
    assert again == result
    counts = result["counts"]
    assert counts["planned"] == 40 and counts["invalid"] == lost and counts["missing"] == 0, counts
    assert result["overall"]["base"]["rate"] == 0 and result["overall"]["checkpoint"]["rate"] == 1
    assert traces.verify(store)["ok"]


# ---------------------------------------------------------------------- the command


def test_run_with_an_endpoint(serve: Any, oracle: Oracle, tmp_path: Path, seed: int, capsys: Any) -> None:
    server = serve(oracle)
    store = tmp_path / "run.db"
    args = ["run", "tooluse", "--seed", str(seed), "-n", "12", "--endpoint", server.url, "--model", "m", "--trace", str(store)]
    assert main(args) == 0
    assert "100.0%" in capsys.readouterr().out
    assert [r["policy"] for r in traces.query(store, "runs")] == ["m"]
    assert main([*args[:6], "--model", "m"]) == 2
    assert "--model goes with --endpoint" in capsys.readouterr().err
    assert main([*args, "--agent", "oracle"]) == 2
    assert main([*args, "--key-variable", "NO_SUCH_VARIABLE"]) == 2
    assert "NO_SUCH_VARIABLE is not set" in capsys.readouterr().err
