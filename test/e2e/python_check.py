"""What python_test.py has the installed package do: MODEL.cqa PROMPT SLOW.cqa; one JSON object on standard output."""
import contextlib
import itertools
import json
import sys
import threading
import time

import numpy

import cortiq


def refusal(call):
    try:
        call()
    except cortiq.Error as error:
        return {"status": error.status, "text": str(error)}
    return None


def silence(session, ids):
    """The longest time in which this thread came to nothing during one run() in another, by that call's time: 1 where it holds Python's lock."""
    turns, call = [], []

    def work():
        call.append(time.monotonic())
        session.run(ids)
        call.append(time.monotonic())

    worker = threading.Thread(target=work)
    worker.start()
    while worker.is_alive():
        turns.append(time.monotonic())
        time.sleep(0.001)
    worker.join()
    begin, end = call
    within = [begin, *(turn for turn in turns if begin < turn < end), end]
    return max(later - earlier for earlier, later in itertools.pairwise(within)) / (end - begin)


def main(path, prompt, slow):
    model = cortiq.Model(path)
    ids = model.encode(prompt)
    session = cortiq.Session(model, threads=1, kv="f32")
    logits = session.run(ids, all=True)
    session.rewind(0)
    whole = session.generate(prompt, max_tokens=24, temperature=0)
    session.rewind()
    streamed = list(session.stream(ids, max_tokens=24, temperature=0))
    kept = session.keep(ids)
    appended = list(session.append(ids[-1]).shape) == [1, logits.shape[1]] and session.ids == ids

    # To a file and back, in another session.
    saved = path + ".session"
    session.save(saved)
    again = cortiq.Session(model, threads=1, kv="f32")
    again.load(saved)
    loaded = again.ids == session.ids and numpy.array_equal(again.run(ids[:1]), session.run(ids[:1]))
    session.keep(ids)

    embedded = [again.embed(prompt).tolist(), again.embed(ids, pooling="last").tolist(), again.embed(ids[:1]).tolist(), again.embed(ids[:1], pooling="last").tolist()]

    # Two sessions at once.
    answers = {}

    def answer(name):
        answers[name] = cortiq.Session(model, threads=1, kv="f32").generate(ids, max_tokens=200, temperature=0).tokens

    workers = [threading.Thread(target=answer, args=(name,)) for name in ("a", "b")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    silent = silence(cortiq.Session(cortiq.Model(slow), threads=1), range(2000))

    left = cortiq.Session(model, threads=1)
    for token in left.stream(ids, max_tokens=200, temperature=0):
        break
    after_leaving = left.position

    class Mine(Exception):
        pass

    def fail(id, text):
        raise Mine()

    try:
        left._core.generate(ids, fail, [], cortiq._core.GenerateOptions())
        raised = False
    except Mine:
        raised = True
    # Left at work when the interpreter ends: a stream that nobody reads on, and a thread.
    global unread
    unread = cortiq.Session(model, threads=1).stream(ids, temperature=0, ignore_end=True)
    next(unread)
    busy = cortiq.Session(model, threads=1)

    def work():
        with contextlib.suppress(cortiq.Error):  # it is cancelled
            while True:
                busy.rewind()
                busy.generate(ids, temperature=0, ignore_end=True)

    threading.Thread(target=work, daemon=True).start()
    json.dump({
        "ids": ids, "decoded": model.decode(ids), "shape": list(logits.shape), "dtype": str(logits.dtype),
        "logits": numpy.asarray(logits, dtype=float).ravel().tolist(), "own": bool(logits.flags["OWNDATA"] or logits.base is not None),
        "text": whole.text, "tokens": whole.tokens, "finish": whole.finish, "prompt_tokens": whole.prompt_tokens,
        "streamed_text": "".join(token.text for token in streamed), "streamed": [token.id for token in streamed if token.id is not None],
        "embedded": embedded, "kept": kept, "appended": appended, "loaded": loaded, "a": answers["a"], "b": answers["b"], "silent": silent, "after_leaving": after_leaving, "raised": raised,
        "chat": model.encode_chat([{"role": "user", "content": "hi"}]),
        "info": [model.info.vocab, model.info.layers, model.info.exact],
        "absent": refusal(lambda: cortiq.Model("/nonexistent/model.cqa")), "id": refusal(lambda: session.run([10**9])),
        "key": refusal(lambda: cortiq.Model(path, require_key="0" * 64)),
        "skill": refusal(lambda: session.select("absent")),
        "session": refusal(lambda: session.load(path)),
    }, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
