"""The Python SDKs of OpenAI and Anthropic through the proxy, against a scripted provider on this machine.

  tests/peers/sdks.py --backstop target/debug/backstop

Every row is a provider's trouble and what the client has to see of it: an answer where that can be cured, the SDK's own
exception where not, and how many requests the provider got.
"""
import argparse, http.server, json, os, pathlib, socket, struct, subprocess, sys, tempfile, threading

import anthropic, openai

words = argparse.ArgumentParser()
words.add_argument("--backstop", required=True)
args = words.parse_args()

TEXT = "hello from the provider"
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": [{"type": "text", "text": TEXT}], "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 3}}
CHAT = {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-x", "choices": [{"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}}
RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "gpt-x", "output": [{"type": "message", "id": "m1", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": TEXT, "annotations": []}]}], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}}


def sse(*events):
    return "".join((f"event: {name}\n" if name else "") + f"data: {json.dumps(data) if not isinstance(data, str) else data}\n\n" for name, data in events)


STREAMS = {
    "/v1/messages": (
        sse(("message_start", {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}})),
        sse(("content_block_start", {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            ("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}})),
        sse(("content_block_stop", {"type": "content_block_stop", "index": 0}),
            ("message_delta", {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 3}}),
            ("message_stop", {"type": "message_stop"})),
    ),
    "/v1/chat/completions": (
        sse((None, {**CHAT, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}], "usage": None})),
        sse((None, {**CHAT, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": TEXT}, "finish_reason": None}], "usage": None})),
        sse((None, {**CHAT, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": None}), (None, "[DONE]")),
    ),
    "/v1/responses": (
        sse(("response.created", {"type": "response.created", "sequence_number": 0, "response": {**RESPONSE, "status": "in_progress", "output": []}})),
        sse(("response.output_text.delta", {"type": "response.output_text.delta", "sequence_number": 1, "item_id": "m1", "output_index": 0, "content_index": 0, "delta": TEXT, "logprobs": []})),
        sse(("response.completed", {"type": "response.completed", "sequence_number": 2, "response": RESPONSE})),
    ),
}
WHOLE = {"/v1/messages": MESSAGE, "/v1/chat/completions": CHAT, "/v1/responses": RESPONSE}
OVERFLOW = {
    "/v1/messages": {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"}},
    "/v1/chat/completions": {"error": {"message": "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (9000 in the messages, 0 in the completion).", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}},
    "/v1/responses": {"error": {"message": "Your input exceeds the context window of this model.", "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded"}},
}


def error(path, kind, message):
    return {"type": "error", "error": {"type": kind, "message": message}} if path == "/v1/messages" else {"error": {"message": message, "type": kind, "param": None, "code": kind}}


class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script, seen = [], []

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        step = Provider.script[min(len(Provider.seen), len(Provider.script) - 1)]
        Provider.seen.append(json.loads(body))
        self.close_connection = True
        path, streams = self.path.split("?")[0], Provider.seen[-1].get("stream")
        name, *more = step
        if name == "ok":
            before, content, end = STREAMS[path]
            self.send(200, before + content + end, "text/event-stream") if streams else self.send(200, json.dumps(WHOLE[path]))
        elif name == "status":
            status, headers = more
            self.send(status, json.dumps(error(path, "api_error", f"status {status}")), headers=headers)
        elif name == "overflow":
            self.send(400, json.dumps(OVERFLOW[path]))
        elif name == "page":
            self.send(200, "<html>Sign in</html>", "text/html")
        elif name == "reset":
            self.reset()
        elif name in ("cut before content", "cut after content"):
            before, content, _ = STREAMS[path]
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            part = before + (content if name == "cut after content" else "")
            self.wfile.write(f"{len(part.encode()):x}\r\n{part}\r\n".encode())

    def send(self, status, text, kind="application/json", headers={}):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
threading.Thread(target=server.serve_forever, daemon=True).start()
origin = f"http://127.0.0.1:{server.server_port}"
scratch = pathlib.Path(tempfile.mkdtemp(prefix="backstop-sdks-"))
env = {**os.environ, "BACKSTOP_STATE_DIR": str(scratch / "state"), "HOME": str(scratch)}
# Every row needs its retries: here they are nearly all that is sent.
(scratch / "config/backstop").mkdir(parents=True)
(scratch / "config/backstop/config.toml").write_text("[retry_budget]\nreserve = 100000\n")
env["XDG_CONFIG_HOME"] = str(scratch / "config")
proxy = subprocess.Popen([os.path.abspath(args.backstop), "proxy", "--listen", "127.0.0.1:0", "--upstream", f"anthropic={origin}", "--upstream", f"openai={origin}"], cwd=scratch, env=env, stderr=subprocess.PIPE, text=True)
base = proxy.stderr.readline().split()[-1]
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
# What the provider does, how many requests it gets, and whether the client gets its text. Streams only where it says so.
ROWS = [
    ("nothing wrong", [OK], 1, True, None),
    ("529, then well", [("status", 529, {}), OK], 2, True, None),
    ("500 three times, then well", [("status", 500, {})] * 3 + [OK], 4, True, None),
    ("429 with retry-after", [("status", 429, {"retry-after": "1"}), OK], 2, True, None),
    ("429 with retry-after-ms", [("status", 429, {"retry-after-ms": "200"}), OK], 2, True, None),
    ("429 beyond the deadline", [("status", 429, {"retry-after": "7999"}), OK], 1, False, None),
    ("reset before the first byte", [("reset",), OK], 2, True, None),
    ("overflow, then well", [("overflow",), OK], 2, True, None),
    ("overflow twice", [("overflow",)], 2, False, None),
    ("500 for ever", [("status", 500, {})], 4, False, None),
    ("401", [("status", 401, {})], 1, False, None),
    ("a page instead of an answer", [("page",)], None, False, None),
    ("cut before the first content", [("cut before content",), OK], 2, True, True),
    ("cut after the first content", [("cut after content",), OK], 1, False, True),
]
wrong = 0
for what, script, requests, succeeds, only_streams in ROWS:
    for name, call in (("messages", messages), ("chat", chat), ("responses", responses)):
        for streams in (False, True):
            if only_streams and not streams:
                continue
            Provider.script, Provider.seen = script, []
            try:
                got = call(streams)
                outcome = got == TEXT
            except (openai.OpenAIError, anthropic.AnthropicError) as problem:
                got, outcome = f"{type(problem).__name__}: {problem}", False
            fine = outcome == succeeds and requests in (None, len(Provider.seen))
            wrong += not fine
            shown = "ok " if fine else "WRONG"
            print(f"{shown} {name:9} {'stream' if streams else 'whole':6} {what}: {len(Provider.seen)} requests, {str(got)[:90]!r}")
proxy.terminate()
sys.exit(f"{wrong} rows are wrong" if wrong or proxy.wait(30) else 0)
