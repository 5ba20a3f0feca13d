"""The proxy beside the provider without it, and beside Portkey's gateway and LiteLLM: latency, time to the first byte,
throughput, CPU, memory.

  benches/proxy.py BACKSTOP LOAD [--peers FOLDER]

LOAD is `cargo build --release -p backstop-llm --example proxy_load`. `.ci/proxy-peers --bench` installs the peers, builds
and runs this. Prints, asserts nothing: machines differ.
"""
import argparse, os, pathlib, resource, socket, subprocess, sys, tempfile, time

words = argparse.ArgumentParser()
words.add_argument("backstop")
words.add_argument("load")
words.add_argument("--peers")
words.add_argument("--count", type=int, default=4000)
args = words.parse_args()
backstop, load = os.path.abspath(args.backstop), os.path.abspath(args.load)
scratch = pathlib.Path(tempfile.mkdtemp(prefix="backstop-bench-"))
env = {**os.environ, "BACKSTOP_STATE_DIR": str(scratch / "state"), "HOME": str(scratch)}
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
children = []


def start(words, **more):
    child = subprocess.Popen(words, env={**env, **more.pop("env", {})}, cwd=scratch, stdin=subprocess.DEVNULL, **more)
    children.append(child)
    return child


def run(*words, headers=""):
    ask = {**os.environ, "PROXY_LOAD_HEADERS": headers}
    return [float(word) for word in subprocess.run([load, *map(str, words)], check=True, capture_output=True, text=True, env=ask).stdout.split()]


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid):
    return next(int(line.split()[1]) / 1024 for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS"))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(port, seconds=60):
    end = time.time() + seconds
    while time.time() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            time.sleep(0.2)
    return False


upstream = start([load, "upstream"], stdout=subprocess.PIPE, text=True)
origin = int(upstream.stdout.readline())
targets = {"direct": (origin, "/v1/chat/completions", None, args.count)}
# Portkey's gateway is told with each request where it goes.
headers = {"portkey": f"x-portkey-provider: openai\nx-portkey-custom-host: http://127.0.0.1:{origin}/v1"}

proxy = start([backstop, "proxy", "--listen", "127.0.0.1:0", "--upstream", f"openai=http://127.0.0.1:{origin}"], stderr=subprocess.PIPE, text=True)
targets["backstop"] = (int(proxy.stderr.readline().rsplit(":", 1)[1]), "/v1/chat/completions", proxy.pid, args.count)

if args.peers:
    peers = pathlib.Path(args.peers).resolve()
    litellm = peers / "py/bin/litellm"
    if litellm.exists():
        port = free_port()
        config = scratch / "litellm.yaml"
        config.write_text(f"model_list:\n  - model_name: m\n    litellm_params:\n      model: openai/m\n      api_base: http://127.0.0.1:{origin}/v1\n      api_key: sk-test\n")
        child = start([str(litellm), "--config", str(config), "--port", str(port), "--host", "127.0.0.1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"LITELLM_TELEMETRY": "False", "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"})
        if wait_for(port, 120):
            targets["litellm"] = (port, "/v1/chat/completions", child.pid, args.count // 10)
    portkey = peers / "node_modules/@portkey-ai/gateway/build/start-server.js"
    if portkey.exists():
        port = free_port()
        child = start(["node", str(portkey), f"--port={port}", "--headless"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if wait_for(port):
            targets["portkey"] = (port, "/v1/chat/completions", child.pid, args.count // 4)

try:
    print(f"{'':10} {'p50 µs':>9} {'p99 µs':>9} {'first byte µs':>14} {'16 conn. req/s':>15} {'CPU ms/req':>11}")
    base = {}
    for name, (port, path, pid, count) in targets.items():
        try:
            more = headers.get(name, "")
            run("ask", port, path, 1, max(count // 10, 50), headers=more)
            before = cpu(pid) if pid else 0
            p50, p99, _ = run("ask", port, path, 1, count, headers=more)
            used = (cpu(pid) - before) / count * 1000 if pid else 0
            (first,) = run("stream", port, path, max(count // 4, 50), headers=more)
            _, _, rate = run("ask", port, path, 16, count * 2, headers=more)
        except subprocess.CalledProcessError as error:
            print(f"{name:10} failed: {error.stderr.strip()[-200:]}")
            continue
        base = base or {"p50": p50, "first": first, "rate": rate}
        print(f"{name:10} {p50:9.1f} {p99:9.1f} {first:14.1f} {rate:15.0f} {used:11.3f}", end="")
        print(f"   p50 +{p50 - base['p50']:.0f} µs, first byte +{first - base['first']:.0f} µs, {rate / base['rate']:.2f}x direct" if pid else "")
    streams = subprocess.Popen([load, "open", str(targets["backstop"][0]), "/v1/chat/completions", "1000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    opened = streams.stdout.readline().strip()
    print(f"memory with {opened} open streams: {memory_mb(proxy.pid):.1f} MB")
    streams.communicate("\n")
finally:
    for child in children:
        child.terminate()
