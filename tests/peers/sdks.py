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
words.add_argument("--row", action="append", default=[], help="only rows with this text")
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
BOTH, WHOLE, STREAM = (False, True), (False,), (True,)
# What the provider does, how many requests it gets, what the client sees of it, and whether it asks for a stream. It sees the
# answer (None), an error with a status, or an error in a stream that had begun (0): always as the SDK's own exception.
ROWS = [
    ("nothing wrong", [OK], 1, None, BOTH),
    ("529, then well", [("status", 529, {})] * 2 + [OK], 3, None, BOTH),
    ("529 for ever", [("status", 529, {})], 4, 529, BOTH),
    ("500 three times, then well", [("status", 500, {})] * 3 + [OK], 4, None, BOTH),
    ("500 for ever", [("status", 500, {})], 4, 500, BOTH),
    *((f"429 with {name}", [step, OK], 2, None, BOTH) for name, step in DIALECTS),
    ("429 beyond the deadline", [("status", 429, {"retry-after": "7999"}), OK], 1, 429, BOTH),
    ("429 for ever", [("status", 429, {"retry-after-ms": "50"})], 5, 429, BOTH),
    ("reset before the first byte", [("reset",), OK], 2, None, BOTH),
    ("reset for ever", [("reset",)], 4, 502, BOTH),
    ("reset in a whole answer", [("reset in the answer",), OK], 2, None, WHOLE),
    ("half of a whole answer", [("cut",), OK], 2, None, WHOLE),
    ("cut before the first content", [("cut before content",), OK], 2, None, STREAM),
    ("cut after the first content", [("cut after content",), OK], 1, 0, STREAM),
    ("reset after the first content", [("reset after content",), OK], 1, 0, STREAM),
    ("an error with status 200", [("hidden",), OK], 2, None, BOTH),
    ("an error after the first content", [("hidden after content",), OK], 1, 0, STREAM),
    ("overflow, then well", [("overflow",), OK], 2, None, BOTH),
    *((f"overflow of {name}", [("overflow", status, words), OK], 2, None, BOTH) for name, status, words in TOO_LARGE),
    ("overflow twice", [("overflow",)], 2, 400, BOTH),
    ("401", [("status", 401, {})], 1, 401, BOTH),
    ("a page, then well", [("page", 502), OK], 2, None, BOTH),
    ("a page for ever", [("page",)], 4, 502, BOTH),
    ("garbage, then well", [("garbage",), OK], 2, None, BOTH),
    ("garbage for ever", [("garbage",)], 4, 502, BOTH),
    ("slow drip", [("drip",)], 1, None, BOTH),
]
wrong = shown = 0
for what, script, requests, wanted, modes in ROWS:
    if args.row and not any(part in what for part in args.row):
        continue
    for name, call in (("messages", messages), ("chat", chat), ("responses", responses)):
        for streams in modes:
            Provider.script, Provider.seen = script, []
            try:
                got = call(streams)
                fine = wanted is None and got == TEXT
            except (openai.APIError, anthropic.APIError) as problem:
                # Only what came with a status of its own has one: an error in a stream has that of the stream.
                status = getattr(problem, "status_code", 200)
                got, fine = f"{type(problem).__name__}: {problem}", wanted is not None and status == (wanted or 200)
            except Exception as problem:
                got, fine = f"not the SDK's own: {type(problem).__name__}: {problem}", False
            fine = fine and requests == len(Provider.seen)
            wrong, shown = wrong + (not fine), shown + 1
            mark = "ok " if fine else "WRONG"
            print(f"{mark} {name:9} {'stream' if streams else 'whole':6} {what}: {len(Provider.seen)} requests, {str(got)[:90]!r}", flush=True)
print(f"{shown - wrong} of {shown} rows as wanted")
proxy.terminate()
sys.exit(f"{wrong} rows are wrong" if wrong or not shown or proxy.wait(40) else 0)
