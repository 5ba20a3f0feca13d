"""The fake API keeps its promises: steps in order, side requests cost none, every kind of failure, bounds, no secret logged."""

import http.client
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

from fake_api import REQUESTS_MAX

HERE = pathlib.Path(__file__).resolve().parent
SHELLS = [{"name": "Bash"}, {"name": "Write"}]
CODEX = [{"type": "function", "name": "exec_command"}, {"type": "custom", "name": "apply_patch"}]


class FakeApi(unittest.TestCase):
    """One server per test."""

    def serve(self, steps):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log_path = pathlib.Path(folder.name, "log.jsonl")
        script = pathlib.Path(folder.name, "script.json")
        script.write_text(json.dumps(steps), encoding="utf-8")
        self.server = subprocess.Popen([sys.executable, HERE / "fake_api.py", script, self.log_path],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        self.port = int(self.server.stdout.readline().removeprefix("PORT "))

    def end(self):
        self.server.kill()
        self.server.communicate()

    def ask(self, text="do it", tools=SHELLS, path="/v1/messages", stream=False, seconds=10, headers=None):
        body = {"model": "m", "stream": stream, "tools": tools}
        body["input" if path.endswith("responses") else "messages"] = [{"role": "user", "content": text}]
        return self.send("POST", path, json.dumps(body), seconds, headers or {})

    def send(self, method, path, body=None, seconds=10, headers=None):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            link.request(method, path, body, headers or {})
            answer = link.getresponse()
            return answer.status, answer.read().decode(), dict(answer.getheaders())
        finally:
            link.close()

    def said(self, **asked):
        return json.loads(self.ask(**asked)[1])["content"][0]

    def log(self):
        return [json.loads(line) for line in self.log_path.read_text(encoding="utf-8").splitlines()]

    def test_chat_completions_and_gemini_are_answered_in_their_own_words(self):
        self.serve([{"write": {"path": "a.txt", "content": "x"}}, {"run": "true"}, {"text": "one"}, {"fail": "rate_limited"}])
        chat = [{"type": "function", "function": {"name": "create"}}, {"type": "function", "function": {"name": "bash"}}]
        answer = json.loads(self.ask("Current working directory: /w\nDo it.", chat, "/v1/chat/completions")[1])
        called = answer["choices"][0]["message"]["tool_calls"][0]["function"]
        self.assertEqual((called["name"], json.loads(called["arguments"])), ("create", {"path": "/w/a.txt", "file_text": "x"}))
        body = {"contents": [{"role": "user", "parts": [{"text": "Do it."}]}],
                "tools": [{"functionDeclarations": [{"name": "run_shell_command"}]}]}
        path = "/v1beta/models/m:{}"
        answer = json.loads(self.send("POST", path.format("generateContent"), json.dumps(body))[1])
        part = answer["candidates"][0]["content"]["parts"][0]
        self.assertEqual(part["functionCall"]["args"]["command"], "true")
        streamed = self.send("POST", path.format("streamGenerateContent?alt=sse"), json.dumps(body))[1]
        self.assertEqual(json.loads(streamed.removeprefix("data: "))["candidates"][0]["content"]["parts"][0]["text"], "one")
        status, text, _ = self.send("POST", path.format("generateContent"), json.dumps(body))
        self.assertEqual((status, json.loads(text)["error"]["status"]), (429, "RESOURCE_EXHAUSTED"))

    def test_steps_are_used_in_order_and_side_requests_use_none(self):
        self.serve([{"run": "true"}, {"text": "one"}])
        self.assertEqual(self.said()["input"]["command"], "true")
        self.assertEqual(self.said(tools=[])["type"], "text")
        self.assertEqual(self.said()["text"], "one")
        self.assertIn("nothing left", self.said()["text"])
        self.assertEqual([line["kind"] for line in self.log()], ["step", "side", "step", "step"])

    def test_a_tool_is_called_in_the_words_of_the_agent(self):
        self.serve([{"write": {"path": "a b", "content": "it's"}}] * 2 + [{"tool": "apply_patch", "input": "patch"}])
        self.assertEqual(self.said(), {"type": "tool_use", "id": "toolu_0001", "name": "Write",
                                       "input": {"file_path": "a b", "content": "it's"}})
        item = json.loads(self.ask(tools=CODEX, path="/v1/responses")[1])["output"][0]
        self.assertEqual(json.loads(item["arguments"])["cmd"], "printf %s 'it'\\''s' > 'a b'")
        item = json.loads(self.ask(tools=CODEX, path="/v1/responses")[1])["output"][0]
        self.assertEqual((item["type"], item["input"]), ("custom_tool_call", "patch"))

    def test_a_step_waits_for_its_text_and_takes_what_it_finds(self):
        self.serve([{"text": "two in {cwd}", "when": "Phase 2"}, {"text": "{id}", "find": {"id": "Phase (\\d)"}}])
        self.assertEqual(self.said(text="Phase 1")["text"], "1")
        self.assertEqual(self.said(text="Phase 2\n<cwd>/here</cwd>")["text"], "two in /here")

    def test_streams_hold_the_same_as_plain_answers(self):
        self.serve([{"text": "hello"}] * 2)
        for path, last in (("/v1/messages", "message_stop"), ("/v1/responses", "response.completed")):
            _, body, _ = self.ask(path=path, stream=True)
            events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: ")]
            self.assertEqual(events[-1]["type"], last)
            self.assertIn("hello", body)

    def test_failures_are_those_of_the_api_and_end_when_told(self):
        self.serve([{"fail": "rate_limited", "times": 2}, {"fail": {"status": 418, "body": {"a": 1}}, "times": 1},
                    {"fail": "unauthorized"}])
        status, body, headers = self.ask()
        self.assertEqual((status, headers["retry-after"]), (429, "1"))
        self.assertEqual(json.loads(body)["error"]["type"], "rate_limit_error")
        status, body, _ = self.ask(path="/v1/responses")
        self.assertEqual((status, json.loads(body)["error"]["code"]), (429, "rate_limit_exceeded"))
        self.assertEqual([self.ask()[0] for _ in range(3)], [418, 401, 401])

    def test_broken_connections(self):
        self.serve([{"fail": "reset", "times": 1}, {"fail": "cut", "times": 1}, {"fail": "hang", "times": 1}])
        with self.assertRaises(ConnectionResetError):
            self.ask()
        with self.assertRaises(ConnectionResetError):
            self.ask(stream=True)
        with self.assertRaises(socket.timeout):
            self.ask(seconds=0.3)

    def test_quit_ends_it_though_somebody_hangs(self):
        self.serve([{"fail": "hang"}])
        with self.assertRaises(socket.timeout):
            self.ask(seconds=0.3)
        self.assertEqual(self.send("GET", "/quit")[0], 200)
        self.assertEqual(self.server.wait(timeout=10), 0)

    def test_it_ends_after_so_many_requests(self):
        self.serve([])
        self.assertEqual({self.ask()[0] for _ in range(REQUESTS_MAX)}, {200})
        self.assertEqual(self.ask()[0], 503)
        self.assertEqual(self.server.wait(timeout=10), 0)

    def test_no_secret_is_logged_and_whoever_leaves_is(self):
        self.serve([])
        self.ask(headers={"x-api-key": "s3cret", "Authorization": "Bearer s3cret", "x-app": "cli"})
        self.assertEqual(self.send("CONNECT", "example.invalid:443")[0], 403)
        asked, left = self.log()
        self.assertNotIn("s3cret", json.dumps(asked))
        self.assertEqual((asked["headers"]["x-app"], asked["last_user_text"]), ("cli", "do it"))
        self.assertEqual((left["method"], left["path"]), ("CONNECT", "example.invalid:443"))

    def test_what_is_not_a_request_is_refused(self):
        self.serve([])
        for body in ("{", "[]", '{"messages": [1]}', '{"messages": {"a": 1}}'):
            self.assertEqual(self.send("POST", "/v1/messages", body)[0], 400, body)
        self.assertEqual(self.send("POST", "/elsewhere", "{}")[0], 404)


if __name__ == "__main__":
    unittest.main()
