"""A byte-level BPE of 269 tokens (256 bytes, ten merges, three specials) in both containers' forms."""
import json

MERGES = ["Ġ t", "h e", "Ġ a", "i n", "r e", "o n", "Ġt he", "e r", "Ġ s", "a t"]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEMPLATE = ("{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def byte_characters():
    """GPT-2's printable stand-in for each byte, in the order of the bytes."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = iter(range(256, 512))
    return [chr(b) if b in kept else chr(next(moved)) for b in range(256)]


def tokens():
    return byte_characters() + [m.replace(" ", "") for m in MERGES] + SPECIALS


VOCAB = len(tokens())
EOS = VOCAB - len(SPECIALS)
IM_END = VOCAB - 1


def tokenizer_json():
    ids = {t: i for i, t in enumerate(tokens())}
    plain = {t: i for t, i in ids.items() if t not in SPECIALS}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return json.dumps({
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": ids[t], "content": t, **flags} for t in SPECIALS],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": plain, "merges": MERGES},
    }, ensure_ascii=False).encode()


def cmf_config():
    return {"chat_template": TEMPLATE, "eos_token_ids": [EOS, IM_END]}


def gguf_metadata():
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": tokens(),
        "tokenizer.ggml.token_type": [1] * (VOCAB - len(SPECIALS)) + [3] * len(SPECIALS),
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.eos_token_id": IM_END,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }
