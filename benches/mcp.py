"""The gateway against its server without it: latency, throughput, CPU, the first list, memory.

  benches/mcp.py BACKSTOP [SERVER WORDS...]

Called by benches/run with server-everything. Its `echo` is measured directly and through the gateway by the same client, in turn,
round after round; the median of the rounds' ratios counts. So is that of a server that does nothing else (twenty lines of
Python), whose ratio says what the gateway itself costs. FASTMCP_PYTHON names a Python that has fastmcp, for its proxy. Prints,
asserts nothing: machines differ, and one that is busy measures nothing.
"""
import json, os, pathlib, re, statistics, subprocess, sys, tempfile, time

backstop = os.path.abspath(sys.argv[1])
server = [os.path.abspath(word) if os.path.isfile(word) else word for word in sys.argv[2:]]
root = pathlib.Path(__file__).resolve().parent.parent
server = server or [sys.executable, str(root / "crates/backstop/tests/fakes/mcp_server.py")]
scratch = pathlib.Path(tempfile.mkdtemp(prefix="backstop-bench-"))
env = {**os.environ, "BACKSTOP_STATE_DIR": str(scratch / "state"), "HOME": str(scratch)}


class Peer:
    """A client that writes lines and reads lines. What is measured uses `call`, `input` and `output` alone: a client that parses
    each answer would be a good part of the time, and of the two cores that three processes share."""

    def __init__(self, words, folder):
        self.child = subprocess.Popen(words, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.next, self.rest = 0, b""
        self.input, self.output = self.child.stdin.fileno(), self.child.stdout.fileno()

    def call(self, tool):
        """A call of `echo`, as a line."""
        self.next += 1
        words = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{"message":"x"}}}'
        return (words % (self.next, tool)).encode() + b"\n"

    def until_answered(self):
        """Reads until the last call is answered: servers say other things too."""
        text = b""
        while not text.endswith(b"\n") or not re.search(rb'"id": ?%d\b' % self.next, text):
            text += os.read(self.output, 1 << 16)
        return text

    def send(self, method, params):
        self.next += 1
        line = {"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}
        self.child.stdin.write(json.dumps(line).encode() + b"\n")
        self.child.stdin.flush()
        return self.next

    def read(self):
        while True:
            while b"\n" not in self.rest:
                self.rest += os.read(self.output, 1 << 20)
            line, self.rest = self.rest.split(b"\n", 1)
            message = json.loads(line)
            if "id" in message and "method" not in message:
                return message

    def ask(self, method, params):
        self.send(method, params)
        return self.read()

    def hello(self):
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})
        self.child.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        self.child.stdin.flush()

    def cpu(self):
        fields = open(f"/proc/{self.child.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self):
        for line in open(f"/proc/{self.child.pid}/status"):
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024

    def close(self):
        self.child.stdin.close()
        self.child.wait()


def sequential(peer, tool, count=1000):
    times = []
    for _ in range(count):
        line = peer.call(tool)
        began = time.perf_counter()
        os.write(peer.input, line)
        answer = peer.until_answered()
        times.append(time.perf_counter() - began)
        assert b'"isError":true' not in answer, answer
    return statistics.median(times) * 1e3


def at_once(peer, tool, count=2000, width=32):
    began = time.perf_counter()
    os.write(peer.input, b"".join(peer.call(tool) for _ in range(width)))
    sent, answered = width, 0
    while answered < count:
        new = os.read(peer.output, 1 << 16).count(b'"content"')
        answered += new
        more = min(new, count - sent)
        os.write(peer.input, b"".join(peer.call(tool) for _ in range(more)))
        sent += more
    return count / (time.perf_counter() - began)


def project(name, servers):
    folder = scratch / name
    folder.mkdir()
    (folder / "backstop.toml").write_text(servers)
    subprocess.run([backstop, "trust"], cwd=folder, env=env, check=True, capture_output=True)
    return folder


def settings(name, words):
    return f"[mcp.{name}]\ncommand = {json.dumps(words[0])}\nargs = {json.dumps(words[1:])}\n"


TRIVIAL = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "tools/call": r = {"content": [{"type": "text", "text": m["params"]["arguments"]["message"]}]}
    elif m["method"] == "tools/list": r = {"tools": [{"name": "echo", "inputSchema": {"type": "object", "properties":
        {"message": {"type": "string"}}, "required": ["message"]}, "annotations": {"readOnlyHint": True}}]}
    else: r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}) + "\\n")
    sys.stdout.flush()
"""
ROUNDS = 7


def compare(label, name, words):
    """Measures a server directly and through the gateway. Gives the gateway's CPU for 1,000 calls, in seconds."""
    folder = project(name, settings("s", words))
    direct, ours = Peer(words, folder), Peer([backstop, "mcp"], folder)
    direct.hello()
    ours.hello()
    ours.ask("tools/list", {})
    sequential(direct, "echo", 200), sequential(ours, "s__echo", 200)

    def rounds(measure):
        both = [(measure(direct, "echo"), measure(ours, "s__echo")) for _ in range(ROUNDS)]
        return sorted(((through / theirs, theirs, through) for theirs, through in both))[ROUNDS // 2]

    ratio, theirs, through = rounds(sequential)
    print(f"mcp echo of {label}: p50 {through:.3f} ms, direct {theirs:.3f} ms, ratio {ratio:.2f} (at most 1.5 is wanted)")
    ratio, theirs, through = rounds(at_once)
    print(f"mcp echo of {label}, 32 at once: {through:.0f}/s, direct {theirs:.0f}/s, ratio {ratio:.2f} (at least 0.8 is wanted)")
    before = ours.cpu()
    sequential(ours, "s__echo", 2000)
    cpu = (ours.cpu() - before) / 2
    print(f"mcp echo of {label}: {cpu:.3f} s of CPU for 1,000 calls in the gateway; load of the machine {os.getloadavg()[0]:.1f}")
    direct.close()
    ours.close()
    return cpu


cpu = compare("the server", "one", server)
trivial = scratch / "trivial.py"
trivial.write_text(TRIVIAL)
compare("a server that does nothing", "trivial", [sys.executable, str(trivial)])
# fastmcp's proxy, where its Python is named.
if os.environ.get("FASTMCP_PYTHON"):
    script = scratch / "proxy.py"
    entry = {"command": server[0], "args": server[1:]}
    script.write_text(f"from fastmcp.server import create_proxy\ncreate_proxy({{'mcpServers': {{'s': {entry!r}}}}}).run(show_banner=False)\n")
    proxy = Peer([os.environ["FASTMCP_PYTHON"], str(script)], scratch)
    proxy.hello()
    names = [tool["name"] for tool in proxy.ask("tools/list", {})["result"]["tools"]]
    name = next(name for name in names if name.endswith("echo"))
    sequential(proxy, name, 50)
    before = proxy.cpu()
    theirs = sequential(proxy, name, 500)
    used = (proxy.cpu() - before) * 2
    print(f"mcp echo: fastmcp's proxy p50 {theirs:.3f} ms, {used:.3f} s of CPU for 1,000 calls; ours is {cpu / used:.3f} of it (a quarter is wanted)")
    proxy.close()

ten = project("ten", "".join(settings(f"s{n}", server) for n in range(10)))
subprocess.run([backstop, "tools", "refresh"], cwd=ten, env=env, check=True, capture_output=True)
times = []
for _ in range(5):
    began = time.perf_counter()
    peer = Peer([backstop, "mcp"], ten)
    peer.hello()
    listed = peer.ask("tools/list", {})
    times.append((time.perf_counter() - began) * 1e3)
    peer.close()
print(f"mcp: first tools/list with ten cached servers, from the start: {statistics.median(times):.0f} ms, {len(listed['result']['tools'])} tools (under 50 ms is wanted)")

# A server with 100 tools, fifty times.
many = scratch / "many.py"
many.write_text(
    "import json, sys\n"
    "tools = [{'name': 'tool_%d' % n, 'description': 'does something ' * 20, 'inputSchema': {'type': 'object', 'properties':\n"
    "          {'p%d' % p: {'type': 'string', 'description': 'a parameter'} for p in range(6)}}} for n in range(100)]\n"
    "for line in sys.stdin:\n"
    "    m = json.loads(line)\n"
    "    if 'id' not in m: continue\n"
    "    r = {'tools': tools} if m['method'] == 'tools/list' else {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'x', 'version': '1'}}\n"
    "    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': r}), flush=True)\n"
)
fifty = project("fifty", "".join(settings(f"s{n}", [sys.executable, str(many)]) for n in range(50)))
subprocess.run([backstop, "tools", "refresh"], cwd=fifty, env=env, check=True, capture_output=True)
peer = Peer([backstop, "mcp"], fifty)
peer.hello()
listed = peer.ask("tools/list", {})
print(f"mcp: memory with fifty servers' catalogues ({len(listed['result']['tools'])} tools): {peer.memory_mb():.0f} MB (100 MB is wanted)")
peer.close()
