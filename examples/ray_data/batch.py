"""Answers a file of prompts with a compiled model, on every machine of a Ray cluster:

    python batch.py model.cqa prompts.jsonl answers --workers 2 --max-tokens 32

Each line of the input is a JSON object with a "prompt"; the folder `answers` gets files of the same objects with "text" and "tokens"
added. The artifact's path has to lead to it on every machine.
"""
import argparse

import cortiq
import ray


class Generate:
    """A worker: the model mapped once, one session."""

    def __init__(self, path, threads, max_tokens):
        self.model = cortiq.Model(path)
        self.session = cortiq.Session(self.model, threads=threads)
        self.max_tokens = max_tokens

    def __call__(self, row):
        ids = self.model.encode(row["prompt"])
        kept = self.session.keep(ids)  # prompts that begin alike share their beginning
        answer = self.session.generate(ids[kept:], max_tokens=self.max_tokens, temperature=0)
        return {**row, "text": answer.text, "tokens": answer.tokens}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("prompts")
    parser.add_argument("answers")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of a worker")
    parser.add_argument("--max-tokens", type=int, default=128)
    args = parser.parse_args()
    answers = ray.data.read_json(args.prompts).map(
        Generate, fn_constructor_args=(args.model, args.threads, args.max_tokens), concurrency=args.workers, num_cpus=args.threads)
    answers.write_json(args.answers)


if __name__ == "__main__":
    main()
