"""What the tests of the TRL adapter share: nothing beyond loopback, a tokenizer and a model made from scratch."""

import socket
from typing import Any

import pytest
import scripted
import torch
import transformers
import trl
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

OFFLINE = "the tests may reach loopback only"


def pytest_report_header() -> str:
    return f"trl {trl.__version__}, transformers {transformers.__version__}, torch {torch.__version__}"


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any connection beyond loopback fails the test that makes it."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            pytest.fail(f"{OFFLINE}, and this connects to {address}")
        return connect(self, address)

    def lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host not in (None, "", "127.0.0.1", "::1", "localhost", socket.gethostname()):
            pytest.fail(f"{OFFLINE}, and this looks up {host}")
        return resolve(host, *args, **kwargs)

    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket, "getaddrinfo", lookup)


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    return scripted.make_tokenizer()


@pytest.fixture
def model() -> Qwen3ForCausalLM:
    return scripted.make_model()
