"""A compiled model behind Ray Serve: replicas that come and go with the load, each with conversations of its own.

    CORTIQ_MODEL=/path/to/model.cqa serve run app:app

    curl http://127.0.0.1:8000/ -d '{"prompt": "Once upon a time", "max_tokens": 16, "temperature": 0}'

A request with the header "serve_multiplexed_model_id: KEY" goes to the replica that has the conversation KEY already, while it is there:
what its prompt begins with is not computed again.
"""
import asyncio
import json
import os

import cortiq
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse

THREADS = int(os.environ.get("CORTIQ_THREADS", "1"))  # of a replica; Ray gives it as many processors
CONVERSATIONS = 8  # that a replica keeps


class Conversation:
    """A session, for one request at a time."""

    def __init__(self, model):
        self.session = cortiq.Session(model, threads=THREADS)
        self.turn = asyncio.Lock()


@serve.deployment(
    max_ongoing_requests=CONVERSATIONS,
    max_replicas_per_node=1,  # one a machine, whose cores it shares out among its conversations
    autoscaling_config={
        "min_replicas": 1,
        "max_replicas": int(os.environ.get("CORTIQ_REPLICAS", "2")),
        "target_ongoing_requests": 1,
        "upscale_delay_s": 1,
        "downscale_delay_s": 60,
        "metrics_interval_s": 1,
        "look_back_period_s": 2,
    },
    ray_actor_options={"num_cpus": THREADS},
)
class Generator:
    def __init__(self, path):
        self.model = cortiq.Model(path)  # mapped: replicas of one machine share its weights

    @serve.multiplexed(max_num_models_per_replica=CONVERSATIONS)
    async def conversation(self, key):
        return Conversation(self.model)

    async def __call__(self, request: Request):
        try:
            wish = json.loads(await request.body())
            ids = self.model.encode(wish["prompt"])
        except (ValueError, KeyError, TypeError) as error:
            return JSONResponse({"error": f"the body has to be a JSON object with a prompt: {error}"}, status_code=400)
        options = {name: wish[name] for name in ("max_tokens", "temperature", "seed", "top_k", "top_p") if name in wish}
        # Requests that name no conversation share one where their prompts begin alike.
        conversation = await self.conversation(serve.get_multiplexed_model_id() or "beginning " + wish["prompt"][:256])
        if wish.get("stream"):
            return StreamingResponse(self.stream(conversation, ids, options), media_type="text/plain")
        async with conversation.turn:
            kept = conversation.session.keep(ids)
            answer = await asyncio.to_thread(conversation.session.generate, ids[kept:], **options)
        return JSONResponse({"text": answer.text, "tokens": answer.tokens, "finish": answer.finish, "kept": kept,
                             "replica": serve.get_replica_context().replica_id.unique_id})

    async def stream(self, conversation, ids, options):
        async with conversation.turn:
            kept = conversation.session.keep(ids)
            tokens = conversation.session.stream(ids[kept:], **options)
            try:
                while (token := await asyncio.to_thread(next, tokens, None)) is not None:
                    yield token.text
            finally:
                await asyncio.to_thread(tokens.close)  # a client that left ends the generation


app = Generator.bind(os.environ["CORTIQ_MODEL"])
