"""A loaded model: what it is, and its text."""
from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Iterable, List, Mapping, Optional, Sequence

from . import _core


@dataclass(frozen=True)
class ModelInfo:
    """What a model says about itself."""

    name: str
    architecture: str
    target: str       #: what the code was compiled for
    text_absent: str  #: why there is no tokenizer; "" when there is one
    exact: bool       #: computed in f32, not in the fast arm
    hidden: int
    layers: int
    vocab: int        #: logits a position
    max_context: int
    weight_bytes: int
    device: str       #: the GPUs that run it; "": the CPU does
    device_note: str  #: why the CPU runs it although `device` was asked for


class Model:
    """A mapped and checked artifact; shared by its sessions."""

    def __init__(self, path: str | os.PathLike[str], *, verify_weights: bool = False, memory: int = 0, large_pages: bool = False,
                 require_key: Optional[str] = None, device: Optional[str] = None, device_memory: int = 0, cpu_fallback: bool = False) -> None:
        """`memory`: bytes for weights, caches and work space of all sessions, beyond which experts stay in the file; 0: no limit.
        `require_key`: the key that has to have signed the artifact, as 64 hexadecimal digits or the name of a file that holds them.
        `device`: GPUs of an artifact compiled with `--target vulkan`, as "0", "0,1" or "auto"; None: the CPU. `device_memory`: bytes of weights on
        each; 0: what is free. `cpu_fallback`: what fails there goes on on the CPU.
        """
        self._core = _core.Model(os.fspath(path), verify_weights, memory, large_pages, require_key, device, device_memory, cpu_fallback)
        self.info = ModelInfo(**self._core.describe())
        self.skills: List[str] = self._core.skills()
        self.masks: List[str] = self._core.masks()

    def encode(self, text: str, *, add_special: bool = True, parse_special: bool = False) -> List[int]:
        """Ids of `text`; with what the tokenizer puts around it, and markers spelled out in it read as text, unless told otherwise."""
        return self._core.encode(text, add_special, parse_special)

    def decode(self, ids: Iterable[int]) -> str:
        """Text of `ids`; special tokens have none."""
        return self._core.decode(list(ids)).decode("utf-8", "replace")

    def encode_chat(self, messages: Sequence[Mapping[str, Any]], **variables: Any) -> List[int]:
        """Ids of a conversation by the model's own template. `variables`: what else the template reads, as `tools`."""
        return self._core.encode_chat(json.dumps({"messages": list(messages), **variables}))
