"""One conversation on a model."""
from __future__ import annotations

import atexit
import contextlib
import os
import queue
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterator, List, Optional, Sequence, Union

import numpy
import numpy.typing

from . import _core
from ._model import Model

_FINISH = ("stop", "length", "cancelled")
#: Tokens that may wait for a slow reader of stream() before the generation waits too.
_AHEAD = 64

Prompt = Union[str, Sequence[int]]


class _AtWork:
    """Sessions inside the library. The interpreter waits for them at its end: a thread that came back later would take the whole process
    down with it.
    """

    def __init__(self) -> None:
        self.sessions: List[Any] = []
        self.ending = threading.Event()
        atexit.register(self._end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.sessions.clear)  # the threads are the parent's

    @contextlib.contextmanager
    def __call__(self, core: Any) -> Iterator[None]:
        if self.ending.is_set():
            raise RuntimeError("the interpreter is ending")
        self.sessions.append(core)
        try:
            yield
        finally:
            self.sessions.remove(core)

    def _end(self) -> None:
        self.ending.set()
        while self.sessions:
            for core in list(self.sessions):
                core.cancel()
            time.sleep(0.01)


_at_work = _AtWork()


@dataclass(frozen=True)
class Token:
    """A chosen token and the text that became final with it, never ending inside a character."""

    id: Optional[int]  #: None for text that was left at the end
    text: str


@dataclass(frozen=True)
class Generated:
    """What a generation gave, and what it took."""

    text: str
    tokens: List[int]
    finish: str  #: "stop", "length" or "cancelled"
    prompt_tokens: int
    prefill_seconds: float
    first_token_seconds: float
    decode_seconds: float
    guessed: int
    accepted: int


class Session:
    """One conversation. For one thread at a time, but for select() and cancel()."""

    def __init__(self, model: Model, *, threads: int = 0, max_context: int = 0, kv: Optional[str] = None) -> None:
        """`kv`: the cache's type, "f32", "f16" or "q8"."""
        self.model = model
        self._core = _core.Session(model._core, threads, max_context, kv)

    @property
    def position(self) -> int:
        """Tokens held."""
        return self._core.position

    def rewind(self, position: int = 0) -> None:
        """Forgets everything after the first `position` tokens."""
        self._core.rewind(position)

    def keep(self, ids: Sequence[int]) -> int:
        """Keeps what is held and `ids` begins with, forgets the rest; how many ids that are (never all of them)."""
        return self._core.keep(list(ids))

    @property
    def ids(self) -> List[int]:
        """The ids that are held."""
        return self._core.ids()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what is held to a file, which appears whole or not at all."""
        with _at_work(self._core):
            self._core.save(os.fspath(path))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Takes a saved session in place of what is held: what follows is what would have followed there. The file is checked whole."""
        with _at_work(self._core):
            self._core.load(os.fspath(path))

    def run(self, ids: Sequence[int], *, all: bool = False) -> numpy.typing.NDArray[numpy.float32]:
        """Appends `ids` of a prompt; logits of the last one, or of each with `all`: [rows, vocab]."""
        with _at_work(self._core):
            return self._core.run(list(ids), all)

    def append(self, id: int) -> numpy.typing.NDArray[numpy.float32]:
        """The same for an id that was chosen from the logits of the one before: prompts may be computed in other numbers."""
        with _at_work(self._core):
            return self._core.append(id)

    def embed(self, text: Prompt, *, pooling: str = "mean") -> numpy.typing.NDArray[numpy.float32]:
        """One vector of length 1 for a text or ids: of the model's last hidden states their mean, or with "last" the last one. The session is
        empty then.
        """
        if pooling not in ("mean", "last"):
            raise ValueError(f"pooling is {pooling!r}; it has to be 'mean' or 'last'")
        ids = self.model.encode(text) if isinstance(text, str) else list(text)
        with _at_work(self._core):
            return self._core.embed(ids, pooling == "last")[0]

    def select(self, skill: Optional[str] = None, mask: Optional[str] = None) -> None:
        """Puts a skill ("a", "a:0.7,b:0.3", "none") and a mask in force from the next step on."""
        self._core.select(skill, mask)

    def cancel(self) -> None:
        """Ends the generation that another thread is in."""
        self._core.cancel()

    def generate(self, prompt: Prompt, **options: Any) -> Generated:
        """Runs `prompt`, a text or ids, behind what is held, and generates.

        Options: max_tokens, temperature (0: always the most likely), top_k, top_p, min_p, repetition_penalty, presence_penalty,
        penalty_window, seed, ignore_end, stop_ids.
        """
        tokens: List[int] = []
        pieces: List[bytes] = []

        def take(id: Optional[int], text: bytes) -> None:
            if id is not None:
                tokens.append(id)
            pieces.append(text)

        counts = self._run(prompt, take, options)
        return Generated(b"".join(pieces).decode("utf-8", "replace"), tokens, _FINISH[counts.finish], counts.prompt_tokens,
                         counts.prefill_seconds, counts.first_token_seconds, counts.decode_seconds, counts.guessed, counts.accepted)

    def stream(self, prompt: Prompt, **options: Any) -> Iterator[Token]:
        """generate(), token by token. Leaving the loop ends the generation."""
        waiting: queue.Queue[Any] = queue.Queue(_AHEAD)
        left = threading.Event()

        def put(item: Any) -> bool:
            while not left.is_set() and not _at_work.ending.is_set():
                try:
                    waiting.put(item, timeout=0.1)
                    return True
                except queue.Full:
                    pass
            return False

        def work() -> None:
            try:
                self._run(prompt, lambda id, text: put(Token(id, text.decode("utf-8", "replace"))), options)
                put(None)
            except BaseException as failure:  # raised in the reader's thread
                put(failure)

        worker = threading.Thread(target=work, name="cortiq-stream", daemon=True)
        worker.start()
        try:
            while (item := waiting.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            left.set()
            self.cancel()
            worker.join()

    def _run(self, prompt: Prompt, on_token: Callable[[Optional[int], bytes], Any], options: dict[str, Any]) -> Any:
        ids = self.model.encode(prompt) if isinstance(prompt, str) else list(prompt)
        how = _core.GenerateOptions()
        stop_ids = list(options.pop("stop_ids", ()))
        for name, value in options.items():
            if not hasattr(how, name):
                raise TypeError(f"there is no option {name!r} of a generation")
            setattr(how, name, value)
        with _at_work(self._core):
            return self._core.generate(ids, on_token, stop_ids, how)
