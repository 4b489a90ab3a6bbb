"""Runs compiled language models (.cqa).

    import cortiq

    model = cortiq.Model("model.cqa")
    session = cortiq.Session(model)
    for token in session.stream("Once upon a time", max_tokens=64):
        print(token.text, end="", flush=True)

A Model may be used from any number of threads. A Session is one conversation, for one thread at a time; only select() and cancel()
may be called while it works. Work is done without Python's lock. Failures raise Error, whose `status` is one of INVALID, UNSUPPORTED,
IO, INTERNAL, NO_MEMORY and CANCELLED.
"""
from ._core import CANCELLED, INTERNAL, INVALID, IO, NO_MEMORY, UNSUPPORTED, Error, __version__
from ._model import Model, ModelInfo
from ._session import Generated, Session, Token

__all__ = ["CANCELLED", "INTERNAL", "INVALID", "IO", "NO_MEMORY", "UNSUPPORTED", "Error", "Generated", "Model", "ModelInfo", "Session", "Token",
           "__version__"]
