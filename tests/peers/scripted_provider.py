"""A model provider on this machine that answers as a script says: three APIs, whole or as a stream, and every way to fail.

A script is a list of steps, one for each request; the last one repeats. A step is a name and what belongs to it:

  ("ok",)                          an answer
  ("status", STATUS, HEADERS)      an error; a header's value may be a function, which is called when it is sent
  ("body", STATUS, HEADERS, BODY)  an error with this body, which may be a function as well
  ("overflow",)                    a request that is too large, in the API's own words; ("overflow", STATUS, WORDS) in these
  ("page",)                        a page for people instead of an answer; ("page", STATUS) with this status
  ("garbage",)                     an answer that is none
  ("hidden",)                      an error in an answer with status 200; ("hidden after content",) behind a stream's first content
  ("drip",)                        an answer in small pieces, slowly
  ("reset",)                       a reset instead of an answer; ("reset in the answer",) in the middle of a whole one,
                                   ("reset after content",) in the middle of a stream
  ("cut",)                         half of a whole answer
  ("cut before content",), ("cut after content",)   a stream that ends too early
"""
import http.server, json, os, socket, struct, subprocess, threading, time

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
        sse(("response.output_item.added", {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {**RESPONSE["output"][0], "status": "in_progress", "content": []}}),
            ("response.output_text.delta", {"type": "response.output_text.delta", "sequence_number": 2, "item_id": "m1", "output_index": 0, "content_index": 0, "delta": TEXT, "logprobs": []})),
        sse(("response.output_item.done", {"type": "response.output_item.done", "sequence_number": 3, "output_index": 0, "item": RESPONSE["output"][0]}),
            ("response.completed", {"type": "response.completed", "sequence_number": 4, "response": RESPONSE})),
    ),
}
WHOLE = {"/v1/messages": MESSAGE, "/v1/chat/completions": CHAT, "/v1/responses": RESPONSE}
OVERFLOW = {
    "/v1/messages": {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"}},
    "/v1/chat/completions": {"error": {"message": "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (9000 in the messages, 0 in the completion).", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}},
    "/v1/responses": {"error": {"message": "Your input exceeds the context window of this model.", "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded"}},
}
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
SERVER_ERROR = {"error": {"message": "The server had an error while processing your request", "type": "server_error", "param": None, "code": None}}
FAILED = {**RESPONSE, "status": "failed", "output": [], "error": {"code": "server_error", "message": "An error occurred while processing your request."}}
# An error that hides in an answer with status 200: in a whole one, and in a stream.
HIDDEN = {
    "/v1/messages": (OVERLOADED, sse(("error", OVERLOADED))),
    "/v1/chat/completions": (SERVER_ERROR, sse((None, SERVER_ERROR))),
    "/v1/responses": (FAILED, sse(("response.failed", {"type": "response.failed", "sequence_number": 2, "response": FAILED}))),
}


def error(path, kind, message):
    return {"type": "error", "error": {"type": kind, "message": message}} if path == "/v1/messages" else {"error": {"message": message, "type": kind, "param": None, "code": kind}}


class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script, seen = [], []
    lock = threading.Lock()

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.close_connection = True
        self.send(404, json.dumps(error("", "not_found", "there is no such path")))

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.split("?")[0]
        self.close_connection = True
        if path not in STREAMS:
            return self.send(404, json.dumps(error(path, "not_found", "there is no such path")))
        with Provider.lock:
            step = Provider.script[min(len(Provider.seen), len(Provider.script) - 1)]
            request = json.loads(body)
            Provider.seen.append(request)
        streams = request.get("stream")
        name, *more = step
        if name == "ok":
            before, content, end = STREAMS[path]
            self.send(200, before + content + end, "text/event-stream") if streams else self.send(200, json.dumps(WHOLE[path]))
        elif name == "status":
            status, headers = more
            self.send(status, json.dumps(error(path, "api_error", f"status {status}")), headers=headers)
        elif name == "body":
            status, headers, body = more
            self.send(status, json.dumps(body() if callable(body) else body), headers=headers)
        elif name == "overflow":
            status, words = more or (400, None)
            self.send(status, json.dumps(error(path, "invalid_request_error", words) if words else OVERFLOW[path]))
        elif name == "garbage":
            self.send(200, "data: {not json\n\ndata: \x00\x01\n\n", "text/event-stream") if streams else self.send(200, "\x00 no json {")
        elif name == "drip":
            text = "".join(STREAMS[path]) if streams else json.dumps(WHOLE[path])
            self.begin("text/event-stream" if streams else "application/json")
            for at in range(0, len(text), 40):
                self.chunk(text[at:at + 40])
                time.sleep(0.05)
            self.chunk("")
        elif name == "page":
            self.send(more[0] if more else 200, "<html>Sign in</html>", "text/html")
        elif name in ("hidden", "hidden after content"):
            if not streams:
                return self.send(200, json.dumps(HIDDEN[path][0]))
            before, content, _ = STREAMS[path]
            self.send(200, before + (content if name == "hidden after content" else "") + HIDDEN[path][1], "text/event-stream")
        elif name == "reset":
            self.reset()
        elif name in ("cut", "reset in the answer"):
            text = json.dumps(WHOLE[path])
            self.begin("application/json")
            self.chunk(text[:len(text) // 2])
            if name != "cut":
                time.sleep(0.2)
                self.reset()
        elif name in ("cut before content", "cut after content", "reset after content"):
            before, content, _ = STREAMS[path]
            self.begin("text/event-stream")
            self.chunk(before + ("" if name == "cut before content" else content))
            if name == "reset after content":
                time.sleep(0.2)
                self.reset()

    def begin(self, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def chunk(self, text):
        self.wfile.write(f"{len(text.encode()):x}\r\n{text}\r\n".encode())
        self.wfile.flush()

    def send(self, status, text, kind="application/json", headers={}):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        for key, value in headers.items():
            self.send_header(key, value() if callable(value) else value)
        self.end_headers()
        self.wfile.write(text.encode())

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


def serve():
    """Starts the provider; gives its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def proxied(backstop, scratch, origin):
    """Starts a proxy in front of the provider; gives its process and its address."""
    env = {**os.environ, "BACKSTOP_STATE_DIR": str(scratch / "state"), "HOME": str(scratch), "XDG_CONFIG_HOME": str(scratch / "config")}
    # Every row needs its retries: here they are nearly all that is sent.
    (scratch / "config/backstop").mkdir(parents=True)
    (scratch / "config/backstop/config.toml").write_text("[retry_budget]\nreserve = 100000\n")
    argv = [os.path.abspath(backstop), "proxy", "--listen", "127.0.0.1:0", "--upstream", f"anthropic={origin}", "--upstream", f"openai={origin}"]
    process = subprocess.Popen(argv, cwd=scratch, env=env, stderr=subprocess.PIPE, text=True)
    base = process.stderr.readline().split()[-1]
    # Warnings are read, so that the proxy never waits for somebody to read them.
    threading.Thread(target=process.stderr.read, daemon=True).start()
    return process, base


def later(seconds, spell):
    """A header's value: this many seconds after it is sent, in a spelling of time."""
    return lambda: spell(time.time() + seconds)


def rfc3339(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def http_date(at):
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(at))


def seconds(at):
    return str(int(at))


# A refusal in each provider's headers or body, for about a second or two.
LIMITED = {"error": {"message": "Rate limit reached", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}
DIALECTS = [
    ("retry-after", ("status", 429, {"retry-after": "1"})),
    ("retry-after as a date", ("status", 429, {"retry-after": later(2, http_date)})),
    ("retry-after-ms", ("status", 429, {"retry-after-ms": "200"})),
    ("x-ms-retry-after-ms", ("status", 429, {"x-ms-retry-after-ms": "200"})),
    ("anthropic-ratelimit", ("status", 429, {"anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": later(2, rfc3339)})),
    ("anthropic-ratelimit-unified", ("status", 429, {"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": later(2, seconds)})),
    ("x-ratelimit durations", ("status", 429, {"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1.2s"})),
    ("RateLimit of the draft", ("status", 429, {"RateLimit-Policy": '"burst";q=10;w=1', "RateLimit": '"burst";r=0;t=1'})),
    ("Gemini's RetryInfo", ("body", 429, {}, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota exceeded", "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.2s"}]}})),
    ("OpenRouter's metadata", ("body", 429, {}, lambda: {"error": {"code": 429, "message": "Rate limit exceeded", "metadata": {"headers": {"X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time() * 1000) + 1000)}}}})),
    ("words only", ("body", 429, {}, {**LIMITED, "error": {**LIMITED["error"], "message": "Rate limit reached. Please try again in 1.2s."}})),
]
# Requests that are too large, in the words of those who speak these APIs.
TOO_LARGE = [
    ("Anthropic", 400, "prompt is too long: 213462 tokens > 200000 maximum"),
    ("Anthropic, with the answer", 400, "input length and `max_tokens` exceed context limit: 199990 + 9 > 200000, decrease input length or `max_tokens` and try again"),
    ("Anthropic, in bytes", 413, "Request exceeds the maximum size"),
    ("OpenAI Chat", 400, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion)."),
    ("OpenAI Responses", 400, "Your input exceeds the context window of this model. Please adjust your input and try again."),
    ("Azure", 400, "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 344888 tokens."),
    ("Gemini", 400, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)."),
    ("Vertex, in bytes", 400, "Request payload size exceeds the limit: 20971520 bytes."),
    ("Bedrock", 400, "Input is too long for requested model."),
    ("OpenRouter", 400, "This endpoint's maximum context length is 65,536 tokens. However, you requested about 81,000 tokens."),
    ("xAI", 400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens"),
    ("Mistral", 400, "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"),
    ("Groq", 400, "Please reduce the length of the messages or completion."),
    ("Copilot", 400, "prompt token count of 213462 exceeds the limit of 128000"),
    ("Kimi", 400, "Your request exceeded model token limit: 262144 (requested: 269030)"),
    ("Cohere", 400, "too many tokens: size limit exceeded by 1200 tokens. Try using shorter or fewer inputs. The limit for this model is 128000 tokens."),
    ("Together", 400, "The input (40960 tokens) is longer than the model's context length (32768 tokens)."),
    ("vLLM", 400, "This model's maximum context length is 32768 tokens. However, your request has 40960 input tokens. Please reduce the length of the input messages."),
    ("SGLang", 400, "The input (40960 tokens) is longer than the model's context length (32768 tokens)."),
    ("TGI", 422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 9 `max_new_tokens`"),
    ("llama.cpp", 400, "request (138229 tokens) exceeds the available context size (133376 tokens), try increasing it"),
    ("LM Studio", 400, "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 9120>= n_ctx: 4096)"),
]
