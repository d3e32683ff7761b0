#!/usr/bin/env python3
"""Memory of turns that wait, on loopback only; prints Markdown. scripts/bench --agent builds what it needs and calls it.

  turns.py --binary FILE [--turns 1000] [--rounds 3]

Each round starts the real binary on a database file of its own, beside a played model that holds every answer back, and asks for
something in as many console chats as there are turns. Two kinds: turns that wait for the model, and turns whose plan waits for a person.
"""

import argparse, asyncio, http.client, json, os, shutil, signal, socket, statistics, subprocess, sys, tempfile, threading, time

parser = argparse.ArgumentParser()
parser.add_argument("--binary", required=True)
parser.add_argument("--turns", type=int, default=1000)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--warm", type=int, default=30, help="turns that run to their end first")
parser.add_argument("--watch", type=float, default=10, help="seconds over which CPU and memory of what waits is looked at")
args = parser.parse_args()
LIMIT = 64


class Model:
    """Chat completions. Answers a chat whose words hold `end` at once, one whose words hold `plan` with a plan, any other not at all."""

    def __init__(self):
        self.waiting = 0
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        threading.Thread(target=self.run, args=(started,), daemon=True).start()
        started.wait()

    def run(self, started):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=4096))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self.loop.run_forever()

    async def serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(next(line.split(":")[1] for line in head.split("\r\n") if line.startswith("content-length")))
                asked = json.loads(await reader.readexactly(length))
                words = [message["content"] for message in asked["messages"] if message["role"] == "user"][-1]
                said = {"role": "assistant", "content": "done"}
                if "plan" in words:
                    steps = [{"id": str(n), "content": f"write part {n} of the report", "tools": ["write_file"]} for n in range(1, 6)]
                    plan = {"overall_goal_ui": "A report", "complexity": "complex", "internal_plan": steps}
                    call = {"id": "call_1", "type": "function", "function": {"name": "plan", "arguments": json.dumps(plan)}}
                    said = {"role": "assistant", "content": None, "tool_calls": [call]}
                elif "end" not in words:
                    self.waiting += 1
                    try:
                        # Until the other side goes away.
                        await reader.read(1)
                    finally:
                        self.waiting -= 1
                    return
                body = json.dumps({"choices": [{"index": 0, "message": said, "finish_reason": "stop"}], "usage": {"total_tokens": 10}}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Gateway:
    def __init__(self, model):
        self.folder = tempfile.mkdtemp(prefix="countersign-turns-")
        os.mkdir(f"{self.folder}/data")
        os.mkdir(f"{self.folder}/workspace")
        self.port = free_port()
        env = {
            "SERVER__BIND": f"127.0.0.1:{self.port}",
            "STORE__DATABASE_URL": f"sqlite://{self.folder}/data/bench.db",
            "MODEL__PROVIDER": "openai",
            "MODEL__BASE_URL": f"http://127.0.0.1:{model.port}/v1",
            "MODEL__NAME": "slow",
            "MODEL__TIMEOUT_SECONDS": "600",
            "AGENT__TURN_TIMEOUT_SECONDS": "600",
            "TOOLS__WORKSPACE": f"{self.folder}/workspace",
            "TELEMETRY__LOG_LEVEL": "warn",
        }
        self.log = open(f"{self.folder}/data/log", "wb")
        env = dict(os.environ, **{f"COUNTERSIGN__{key}": value for key, value in env.items()})
        self.process = subprocess.Popen([args.binary, "serve"], env=env, cwd=self.folder, stdout=self.log, stderr=self.log)
        self.until(lambda: self.ask("GET", "/healthz", ok=False) == 200, 60)

    def ask(self, method, path, body=None, ok=True):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            connection.request(method, path, json.dumps(body) if body else None, {"content-type": "application/json"} if body else {})
            answer = connection.getresponse()
            text = answer.read().decode()
        except OSError:
            return None
        finally:
            connection.close()
        if ok and answer.status >= 300:
            raise RuntimeError(f"{path}: {answer.status} {text}")
        return text if ok else answer.status

    def say(self, chat, words):
        self.ask("POST", "/api/v1/messages", {"chat_id": chat, "user_id": "u1", "text": words})

    def depth(self, queue):
        line = f'countersign_queue_depth{{queue="{queue}"}} '
        return int(float(next(text[len(line):] for text in self.ask("GET", "/metrics").splitlines() if text.startswith(line))))

    def until(self, holds, seconds):
        end = time.monotonic() + seconds
        while not holds():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("it does not get there: " + open(f"{self.folder}/data/log", errors="replace").read()[-2000:])
            time.sleep(0.05)

    def memory(self):
        """RSS without what is a file's, KiB."""
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("RssAnon:"):
                return int(line.split()[1])

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def measure(kind):
    model = Model()
    gateway = Gateway(model)
    try:
        for number in range(args.warm):
            gateway.say(f"warm{number}", f"the end {number}")
        gateway.until(lambda: gateway.depth("turns") == 0 and gateway.depth("inbox") == 0, 120)
        before = gateway.memory()
        begun = time.monotonic()
        for number in range(args.turns):
            gateway.say(f"chat{number}", "plan a report" if kind == "person" else "think")
        if kind == "person":
            gateway.until(lambda: gateway.depth("gates") == args.turns and gateway.depth("outbox") == 0, 600)
        else:
            gateway.until(lambda: model.waiting >= args.turns, 600)
        took = time.monotonic() - begun
        cpu, seen, end = gateway.cpu(), [], time.monotonic() + args.watch
        while time.monotonic() < end:
            seen.append(gateway.memory())
            time.sleep(0.25)
        share = (gateway.cpu() - cpu) / args.watch * 100
        row = dict(before=before, during=max(seen), each=(max(seen) - before) / args.turns, share=share, took=took)
        print(f"{kind}: {row}", file=sys.stderr, flush=True)
        return row
    finally:
        gateway.stop()


def middle(rows, key, digits=1):
    values = [row[key] for row in rows]
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


print(f"\n{args.turns:,} turns in as many chats, {args.rounds} rounds on a database file, medians (range); memory without what is a file's, the most of {args.watch:g} s.\n")
print("| turns that wait for | memory before, KiB | with all of them, KiB | KiB a turn | limit | CPU while they wait, % of a core | until all waited, s | |")
print("|---|---|---|---|---|---|---|---|")
good = True
for kind, name in (("model", "the model"), ("person", "a person (plan review)")):
    rows = [measure(kind) for _ in range(args.rounds)]
    holds = statistics.median(row["each"] for row in rows) < LIMIT
    good &= holds
    cells = " | ".join([middle(rows, "before", 0), middle(rows, "during", 0), middle(rows, "each"), str(LIMIT), middle(rows, "share"), middle(rows, "took")])
    print(f"| {name} | {cells} | {'holds' if holds else '**falls short**'} |", flush=True)
sys.exit(0 if good else 1)
