"""The Python SDKs of OpenAI and Anthropic through the proxy, against a scripted provider on this machine.

  tests/peers/sdks.py --backstop target/debug/backstop

Every row is a provider's trouble and what the client has to see of it: an answer where that can be cured, the SDK's own
exception where not, and how many requests the provider got.
"""
import argparse, pathlib, sys, tempfile

import anthropic, openai

sys.dont_write_bytecode = True
from scripted_provider import DIALECTS, TEXT, TOO_LARGE, Provider, proxied, serve  # noqa: E402

words = argparse.ArgumentParser()
words.add_argument("--backstop", required=True)
args = words.parse_args()

scratch = pathlib.Path(tempfile.mkdtemp(prefix="backstop-sdks-"))
proxy, base = proxied(args.backstop, scratch, serve())
TURNS = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"turn {n} " + "word " * 50} for n in range(21)]
account = 0


def client(kind):
    # An account and a model for each row, so that one row's limit or breaker does not hold for the next.
    global account
    account += 1
    return anthropic.Anthropic(base_url=base, api_key=f"key-{account}") if kind == "anthropic" else openai.OpenAI(base_url=f"{base}/v1", api_key=f"key-{account}")


def messages(streams):
    one = client("anthropic")
    if not streams:
        return one.messages.create(model=f"claude-{account}", max_tokens=9, messages=TURNS).content[0].text
    with one.messages.stream(model=f"claude-{account}", max_tokens=9, messages=TURNS) as stream:
        return "".join(stream.text_stream)


def chat(streams):
    one = client("openai")
    made = one.chat.completions.create(model=f"gpt-{account}", messages=TURNS, stream=streams)
    return "".join(chunk.choices[0].delta.content or "" for chunk in made if chunk.choices) if streams else made.choices[0].message.content


def responses(streams):
    one = client("openai")
    made = one.responses.create(model=f"gpt-{account}", input=TURNS, stream=streams)
    if not streams:
        return made.output_text
    text = ""
    for event in made:
        if event.type == "response.failed":
            raise openai.APIError(event.response.error.message, request=None, body=None)
        text += event.delta if event.type == "response.output_text.delta" else ""
    return text


OK = ("ok",)
BOTH, WHOLE_ONLY, STREAM_ONLY = (False, True), (False,), (True,)
# What the provider does, how many requests it gets, whether the client gets its text, and whether it asks for a stream.
ROWS = [
    ("nothing wrong", [OK], 1, True, BOTH),
    ("529, then well", [("status", 529, {}), OK], 2, True, BOTH),
    ("500 three times, then well", [("status", 500, {})] * 3 + [OK], 4, True, BOTH),
    *((f"429 with {name}", [step, OK], 2, True, BOTH if name == "retry-after" else WHOLE_ONLY) for name, step in DIALECTS),
    ("429 beyond the deadline", [("status", 429, {"retry-after": "7999"}), OK], 1, False, BOTH),
    ("reset before the first byte", [("reset",), OK], 2, True, BOTH),
    ("overflow, then well", [("overflow",), OK], 2, True, BOTH),
    *((f"overflow: {words[:40]}", [("overflow", words), OK], 2, True, WHOLE_ONLY) for words in TOO_LARGE),
    ("overflow twice", [("overflow",)], 2, False, BOTH),
    ("500 for ever", [("status", 500, {})], 4, False, BOTH),
    ("401", [("status", 401, {})], 1, False, BOTH),
    ("a page instead of an answer", [("page",)], None, False, BOTH),
    ("garbage instead of an answer", [("garbage",)], None, False, BOTH),
    ("slow drip", [("drip",)], 1, True, BOTH),
    ("cut before the first content", [("cut before content",), OK], 2, True, STREAM_ONLY),
    ("cut after the first content", [("cut after content",), OK], 1, False, STREAM_ONLY),
    ("reset after the first content", [("reset after content",), OK], 1, False, STREAM_ONLY),
]
wrong = 0
for what, script, requests, succeeds, modes in ROWS:
    for name, call in (("messages", messages), ("chat", chat), ("responses", responses)):
        for streams in modes:
            Provider.script, Provider.seen = script, []
            try:
                got = call(streams)
                outcome = got == TEXT
            # What is no JSON at all the SDKs do not wrap.
            except (openai.OpenAIError, anthropic.AnthropicError, ValueError, AttributeError, TypeError) as problem:
                got, outcome = f"{type(problem).__name__}: {problem}", False
            fine = outcome == succeeds and requests in (None, len(Provider.seen))
            wrong += not fine
            shown = "ok " if fine else "WRONG"
            print(f"{shown} {name:9} {'stream' if streams else 'whole':6} {what}: {len(Provider.seen)} requests, {str(got)[:90]!r}")
proxy.terminate()
sys.exit(f"{wrong} rows are wrong" if wrong or proxy.wait(30) else 0)
