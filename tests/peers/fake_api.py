#!/usr/bin/env python3
"""A loopback stand-in for the model APIs that agents' command lines talk to.

    fake_api.py SCRIPT.json LOG.jsonl

It listens on a free port of 127.0.0.1, prints `PORT n`, and answers Anthropic Messages (`/v1/messages`, plain and streamed,
and `/v1/messages/count_tokens`), OpenAI Responses (`/v1/responses`), OpenAI Chat Completions (`/v1/chat/completions`) and
Gemini (`/v1beta/models/M:generateContent`, `:streamGenerateContent`, `:countTokens`), all plain and streamed. It ends on
`GET /quit`, after five minutes, or after 1000 requests. It never opens a connection itself.

The script is a list of steps. Each model request is answered by the first step that is not used up:

    {"text": "Done."}                                    the model speaks, and its turn is over
    {"write": {"path": "a.txt", "content": "hi\\n"}}      it calls the tool that writes files (a shell, if there is none)
    {"run": "cargo test"}                                it calls the tool that runs commands
    {"tool": "Edit", "input": {"file_path": "a"}}        it calls this tool
    {"fail": "rate_limited"}                             a failure of FAILURES, or reset, cut, hang, stall
    {"fail": {"status": 418, "headers": {}, "body": {}}} any other answer
    {"fail": "usage_limit", "seconds": 12}               the limit of a subscription, for so long since it was first met

Any step may also have:

    "times": 3                  it answers so many requests; 0: all that follow. An answer has 1, a failure 0
    "when": "Phase 2A"          only for requests in which this text stands. Agents that run at once each get their own steps
    "find": {"id": "RE (..)"}   `{id}` in the step's texts becomes what the group matched in the request. `{cwd}` is always
                                there: the folder that the agent says it works in
    "usage": [12, 5]            tokens in and out

When all steps are used up the answer is a short text. A request without tools (titles, summaries, quota pings) is a side
request: it gets a harmless answer and uses no step. Every request is one line of the log, without its secrets. A CONNECT is
logged and refused: point a proxy variable here and the log shows who wanted to leave the machine.
"""

import json
import re
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.dont_write_bytecode = True
from fake_formats import CWD, Asked, anthropic, chat, gemini, responses  # noqa: E402

REQUESTS_MAX = 1000
LIFETIME_SECONDS = 300
BODY_BYTES_MAX = 16 * 1024 * 1024
SCRIPT_BYTES_MAX = 1024 * 1024
STEPS_MAX = 200
LOGGED_CHARS_MAX = 4000
SOCKET_SECONDS_MAX = 60

# Parts of the names of headers whose values are not logged.
SECRET_HEADERS = ("auth", "key", "token", "cookie", "secret")

# name: status, headers, Anthropic's error (type, message), OpenAI's error (type, code, message). Gemini's is GEMINI_FAILURES.
FAILURES = {
    "rate_limited": (429, {"retry-after": "1"}, ("rate_limit_error", "This request would exceed your rate limit."),
                     ("requests", "rate_limit_exceeded", "Rate limit reached. Please try again in 1s.")),
    "overloaded": (529, {}, ("overloaded_error", "Overloaded"), ("server_error", "server_is_overloaded", "Overloaded")),
    "server_error": (500, {}, ("api_error", "Internal server error"), ("server_error", None, "Internal server error")),
    "unauthorized": (401, {}, ("authentication_error", "invalid x-api-key"),
                     ("invalid_request_error", "invalid_api_key", "Incorrect API key provided.")),
    "prompt_too_long": (400, {}, ("invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"),
                        ("invalid_request_error", "context_length_exceeded",
                         "Your input exceeds the context window of this model.")),
    "credit_exhausted": (400, {}, ("invalid_request_error", "Your credit balance is too low to access the API."),
                         ("insufficient_quota", "insufficient_quota", "You exceeded your current quota.")),
}
RETRY_SOON = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}
DAILY = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [
    {"quotaMetric": "generativelanguage.googleapis.com/generate_requests_per_model_per_day",
     "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}
# name: status, Gemini's status, message, details
GEMINI_FAILURES = {
    "rate_limited": (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", [RETRY_SOON]),
    "overloaded": (503, "UNAVAILABLE", "The model is overloaded. Please try again later.", []),
    "server_error": (500, "INTERNAL", "An internal error has occurred.", []),
    "unauthorized": (401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", []),
    "prompt_too_long": (400, "INVALID_ARGUMENT",
                        "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).", []),
    "credit_exhausted": (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details.", [DAILY]),
}
# The limit of a subscription, in each API's words; its reset is in the answer.
USAGE_LIMIT = "usage_limit"
# Failures of the connection: `reset` and `hang` before any answer, `cut` and `stall` in the middle of a stream.
BROKEN = ("reset", "cut", "hang", "stall")
KINDS = ("text", "write", "run", "tool", "fail")


class Script:
    """The steps, and how often each may still be used."""

    def __init__(self, steps):
        if not isinstance(steps, list) or len(steps) > STEPS_MAX:
            raise ValueError(f"a script is a list of at most {STEPS_MAX} steps")
        for number, step in enumerate(steps, 1):
            if not isinstance(step, dict) or sum(kind in step for kind in KINDS) != 1:
                raise ValueError(f"step {number}: needs exactly one of {', '.join(KINDS)}")
            failure = step.get("fail")
            if isinstance(failure, str) and failure not in (*FAILURES, *BROKEN, USAGE_LIMIT):
                raise ValueError(f"step {number}: no such failure: {failure}")
        self.steps = steps
        self.left = [step.get("times", 0 if "fail" in step else 1) or None for step in steps]
        # When a step that holds for some seconds is over, once it was met.
        self.ends = [None] * len(steps)
        self.lock = threading.Lock()

    def next(self, text):
        """The step that answers a request with this text, and its number from 1."""
        with self.lock:
            for index, step in enumerate(self.steps):
                if self.left[index] == 0 or step.get("when", "") not in text:
                    continue
                if "seconds" in step:
                    self.ends[index] = self.ends[index] or int(time.time()) + step["seconds"]
                    if time.time() >= self.ends[index]:
                        continue
                    step = {**step, "until": self.ends[index]}
                if self.left[index] is not None:
                    self.left[index] -= 1
                return filled(step, text), index + 1
        return {"text": "There is nothing left to do."}, 0


def filled(step, text):
    """The step with what its `find` found in the request."""
    found = {}
    for name, pattern in {"cwd": CWD, **step.get("find", {})}.items():
        match = re.search(pattern, text)
        if match:
            found["{" + name + "}"] = match.group(1)

    def fill(value):
        if isinstance(value, str):
            for name, replacement in found.items():
                value = value.replace(name, replacement)
            return value
        if isinstance(value, dict):
            return {key: fill(inner) for key, inner in value.items()}
        return [fill(inner) for inner in value] if isinstance(value, list) else value

    return {key: value if key in ("find", "when") else fill(value) for key, value in step.items()}


class Handler(BaseHTTPRequestHandler):
    """One connection. The server holds the script, the log and the counts."""

    protocol_version = "HTTP/1.1"
    timeout = SOCKET_SECONDS_MAX

    def do_GET(self):
        if self.path == "/quit":
            self.reply(200, {"ended": True})
            return self.server.end()
        self.other()

    def do_HEAD(self):
        self.other()

    def do_CONNECT(self):
        self.close_connection = True
        self.other(403)

    def do_POST(self):
        length = self.headers.get("content-length", "")
        if not length.isdigit() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True
            return self.reply(413, {"error": {"type": "request_too_large", "message": "no length, or too long"}})
        raw = self.rfile.read(int(length))
        route = self.path.split("?")[0].rstrip("/")
        dialect = {"/v1/messages": anthropic, "/v1/responses": responses, "/v1/chat/completions": chat}.get(route)
        model, _, method = route.removeprefix("/v1beta/models/").partition(":")
        is_gemini = route.startswith("/v1beta/models/") and method in ("generateContent", "streamGenerateContent")
        try:
            body = json.loads(raw)
            asked = Asked(body, model, method.startswith("stream")) if is_gemini else Asked(body)
        except (ValueError, AttributeError, TypeError) as error:
            return self.other(400, len(raw), f"cannot be read: {error}")
        if dialect or is_gemini:
            return self.model_request(dialect or gemini, asked, len(raw))
        if route == "/v1/messages/count_tokens":
            self.note("side", len(raw), asked)
            return self.reply(200, {"input_tokens": len(raw) // 4})
        if method == "countTokens":
            self.note("side", len(raw), asked)
            return self.reply(200, {"totalTokens": len(raw) // 4})
        self.other(404, len(raw))

    def model_request(self, dialect, asked, size):
        step, number = (None, None)
        if asked.tools:
            step, number = self.server.script.next(asked.text)
        serial = self.note("step" if step else "side", size, asked, number)
        if serial is None:
            return None
        if step is None:
            step = {"text": "A small piece of work"}
        failure = step.get("fail")
        if isinstance(failure, str) and failure in BROKEN:
            if failure in ("hang", "reset") or not asked.stream:
                return self.broken(failure)
            begun = dialect({"text": "Let me"}, asked, serial)[1]
            for candidate in begun[0].get("candidates", []):
                # A whole answer of Gemini's is one event: this one goes on.
                del candidate["finishReason"]
            return self.stream(begun, failure)
        if failure == USAGE_LIMIT:
            return self.usage_limit(step["until"], dialect)
        if failure:
            return self.fail(failure, dialect)
        message, events = dialect(step, asked, serial)
        return self.stream(events) if asked.stream else self.reply(200, message)

    def fail(self, failure, dialect):
        if isinstance(failure, dict):
            return self.reply(failure["status"], failure.get("body", {}), failure.get("headers", {}))
        if dialect is gemini:
            status, word, message, details = GEMINI_FAILURES[failure]
            return self.reply(status, {"error": {"code": status, "status": word, "message": message, "details": details}})
        status, headers, ours, theirs = FAILURES[failure]
        if dialect is anthropic:
            return self.reply(status, {"type": "error", "error": {"type": ours[0], "message": ours[1]}}, headers)
        if failure == "credit_exhausted":
            status = 429
        error = {"type": theirs[0], "code": theirs[1], "message": theirs[2], "param": None}
        return self.reply(status, {"error": error}, headers)

    def usage_limit(self, until, dialect):
        left = max(1, int(until - time.time()))
        if dialect is anthropic:
            windows = {f"anthropic-ratelimit-unified-{name}": value for name, value in (
                ("status", "rejected"), ("reset", str(until)), ("representative-claim", "five_hour"),
                ("5h-status", "rejected"), ("5h-reset", str(until)), ("5h-utilization", "1.0"))}
            error = {"type": "rate_limit_error", "message": "This request would exceed your account's rate limit. Please try again later."}
            return self.reply(429, {"type": "error", "error": error}, {"retry-after": str(left), "x-should-retry": "false", **windows})
        if dialect is gemini:
            delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{left}s"}
            message = f"You exceeded your current quota. Please retry in {left}s."
            return self.reply(429, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": message, "details": [DAILY, delay]}})
        error = {"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus",
                 "resets_at": until, "resets_in_seconds": left}
        return self.reply(429, {"error": error}, {"retry-after": str(left)} if dialect is chat else {})

    def stream(self, events, failure=None):
        """Server-sent events; with a failure, only the first of them, then that."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events[:1] if failure else events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        if not failure and events and events[0].get("object") == "chat.completion.chunk":
            self.wfile.write(b"data: [DONE]\n\n")
        self.wfile.flush()
        if failure:
            self.broken(failure)

    def broken(self, failure):
        """Says no more: drops the connection at once, or keeps it open until the end."""
        self.close_connection = True
        if failure in ("hang", "stall"):
            self.server.over.wait(LIFETIME_SECONDS)
        # No lingering: the peer sees a reset, not an orderly end.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def other(self, status=404, size=0, why="not known here"):
        if self.note("other", size) is not None:
            self.reply(status, {"error": {"type": "not_found_error", "message": why}})

    def note(self, kind, size, asked=None, step=None):
        """Logs this request and gives it a number; none if there were too many."""
        headers = {name.lower(): value[:200] for name, value in self.headers.items()
                   if not any(part in name.lower() for part in SECRET_HEADERS)}
        line = {"method": self.command, "path": self.path[:200], "kind": kind, "headers": headers, "body_bytes": size}
        if asked:
            line |= {"model": asked.model, "stream": asked.stream, "step": step, "tools": sorted(asked.tools),
                     "last_user_text": asked.user[-LOGGED_CHARS_MAX:], "new_text": asked.new[-LOGGED_CHARS_MAX:]}
        serial = self.server.note(line)
        if serial is None:
            self.reply(503, {"error": {"type": "api_error", "message": "too many requests for one test"}})
            self.server.end()
        return serial

    def reply(self, status, body, headers=None):
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    """The listener, its script, its log and its end."""

    daemon_threads = True

    def __init__(self, script, log):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.log, self.count = script, log, 0
        self.lock, self.over, self.began = threading.Lock(), threading.Event(), time.monotonic()

    def note(self, line):
        with self.lock:
            if self.count >= REQUESTS_MAX:
                return None
            self.count += 1
            line = {"n": self.count, "at": round(time.monotonic() - self.began, 3), **line}
            self.log.write(json.dumps(line) + "\n")
            self.log.flush()
            return self.count

    def end(self):
        self.over.set()
        threading.Thread(target=self.shutdown, daemon=True).start()

    def handle_error(self, request, client_address):
        # A peer that goes away in the middle is what the tests are about.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: fake_api.py SCRIPT.json LOG.jsonl")
    with open(sys.argv[1], encoding="utf-8") as file:
        script = Script(json.loads(file.read(SCRIPT_BYTES_MAX)))
    with open(sys.argv[2], "a", encoding="utf-8") as log:
        server = Server(script, log)
        limit = threading.Timer(LIFETIME_SECONDS, server.end)
        limit.daemon = True
        limit.start()
        print(f"PORT {server.server_address[1]}", flush=True)
        server.serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main()
