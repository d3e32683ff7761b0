#!/usr/bin/env python3
"""Alternating rounds of the accept path, on loopback only; prints Markdown. scripts/bench builds what it needs and calls it.

  run.py --work DIR [--rounds 5] [--seconds 3] [--only "a;b"] [--skip-table] [--skip-latency] [--skip-flat] [--skip-sockets]
         [--json FILE]

DIR/bin holds countersign, load, limit and flood; DIR/peers (optional) the Node peers, and the Python peers with their venv. Every round starts each server anew: start-up,
idle memory, throughput, latency and CPU a request come from the same run. Server on core 0, everything else on core 1.
"""

import argparse, glob, json, os, shutil, signal, socket, sqlite3, statistics, subprocess, sys, tempfile, time

parser = argparse.ArgumentParser()
parser.add_argument("--work", required=True)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--seconds", type=float, default=3)
parser.add_argument("--connections", type=int, default=32)
parser.add_argument("--only", default="", help="substrings of names, with semicolons between")
parser.add_argument("--rate", type=float, default=250, help="events a second of the latency runs")
parser.add_argument("--skip-latency", action="store_true")
parser.add_argument("--skip-table", action="store_true")
parser.add_argument("--skip-flat", action="store_true")
parser.add_argument("--skip-sockets", action="store_true")
parser.add_argument("--events", type=int, default=1_000_000, help="stored events of the growth runs")
parser.add_argument("--reviews", type=int, default=100_000, help="pending reviews of the growth runs")
parser.add_argument("--binary", action="append", default=[], help="another countersign instead of DIR/bin/countersign; the second time: an earlier one to compare with")
parser.add_argument("--json", default="", help="raw rows go here")
args = parser.parse_args()
work = os.path.abspath(args.work)
binary = os.path.abspath(args.binary[0]) if args.binary else f"{work}/bin/countersign"
earlier = os.path.abspath(args.binary[1]) if len(args.binary) > 1 else None
rows_file = open(args.json, "a") if args.json else None
PIN = shutil.which("taskset") is not None and (os.cpu_count() or 1) > 1
SERVER, OTHERS = "0", "1"
scratch = tempfile.mkdtemp(prefix="countersign-bench-")


def pinned(core, command):
    return (["taskset", "-c", core] if PIN else []) + command


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def tree(pid):
    found = [pid]
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path) as children:
                for child in children.read().split():
                    found += tree(int(child))
        except OSError:
            pass
    return found


def cpu_us(pids):
    """Time on a core of all threads, microseconds."""
    total = 0
    for pid in pids:
        for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
            try:
                total += int(open(path).read().split()[0])
            except (OSError, ValueError, IndexError):
                pass
    return total / 1e3


def memory_mib(pids):
    """(RSS, PSS)"""
    sums = {"Rss:": 0, "Pss:": 0}
    for pid in pids:
        try:
            for line in open(f"/proc/{pid}/smaps_rollup"):
                key = line.split(None, 1)[0]
                if key in sums:
                    sums[key] += int(line.split()[1])
        except OSError:
            pass
    return sums["Rss:"] / 1024, sums["Pss:"] / 1024


def spawn(command, core, env=None, cwd=None, log=None):
    out = open(log, "wb") if log else subprocess.DEVNULL
    return subprocess.Popen(pinned(core, command), env=dict(os.environ, **(env or {})), cwd=cwd, stdout=out, stderr=out, start_new_session=True)


def stop(process):
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(5)
            return
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def listens(port, process, seconds=30):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError("it ended instead of listening")
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            time.sleep(0.001)
    raise RuntimeError("nobody listens")


def load(port, kind, **options):
    command = [f"{work}/bin/load", "--target", f"http://127.0.0.1:{port}/webhooks/{kind}/events", "--kind", kind]
    for key, value in options.items():
        command += ["--" + key.replace("_", "-"), str(value)]
    done = subprocess.run(pinned(OTHERS, command), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-400:])
    return json.loads(done.stdout)


# --- PostgreSQL of our own


class Postgres:
    def __init__(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))[-1:] or [shutil.which("initdb")]
        if not found[0]:
            raise RuntimeError("no PostgreSQL here (initdb)")
        self.bin = os.path.dirname(os.path.realpath(found[0]))
        self.folder = tempfile.mkdtemp(prefix="countersign-bench-pg-")
        self.port = free_port()
        self.drop = []
        if os.geteuid() == 0:
            # The server refuses to run as root.
            self.drop = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
            shutil.chown(self.folder, "nobody", "nogroup")
        data = f"{self.folder}/data"
        made = subprocess.run(self.drop + [f"{self.bin}/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8"], capture_output=True, text=True, cwd="/")
        if made.returncode != 0:
            raise RuntimeError(made.stderr.strip())
        self.process = subprocess.Popen(
            pinned(OTHERS, self.drop + [f"{self.bin}/postgres", "-D", data, "-p", str(self.port), "-k", self.folder, "-c", "listen_addresses=127.0.0.1"]),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", start_new_session=True,
        )
        listens(self.port, self.process)
        self.number = 0
        until = time.monotonic() + 20
        while self.sql("SELECT 1", check=False).returncode != 0 and time.monotonic() < until:
            time.sleep(0.05)

    def sql(self, text, database="postgres", check=True):
        command = [f"{self.bin}/psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-d", database, "-v", "ON_ERROR_STOP=1", "-Atqc", text]
        return subprocess.run(command, capture_output=True, text=True, check=check)

    def fresh(self):
        self.number += 1
        self.sql(f"CREATE DATABASE bench{self.number}")
        return f"postgres://postgres@127.0.0.1:{self.port}/bench{self.number}"

    def pids(self):
        return tree(self.process.pid)

    def stop(self):
        stop(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)


postgres = None


# --- what is measured


def limit(mode):
    return lambda port, folder, kind: ([f"{work}/bin/limit", mode, f"{folder}/data/limit.db"], {}, None)


def node(script):
    return lambda port, folder, kind: (["node", script], {"NODE_ENV": "production"}, f"{work}/peers")


def ours(database, roles, filled=None, program=None, sockets=None):
    def command(port, folder, kind):
        # In a folder of its own, as the default has it: every write beside config.yaml wakes the watch of that file.
        url = filled or (postgres.fresh() if database == "postgres" else f"sqlite://{folder}/data/bench.db")
        env = {
            "SERVER__BIND": f"127.0.0.1:{port}",
            "SERVER__ROLES": roles,
            "STORE__DATABASE_URL": url,
            "TELEMETRY__LOG_LEVEL": os.environ.get("BENCH_LOG_LEVEL", "info"),
            "CHANNELS__SLACK__ENABLED": "true",
            "CHANNELS__SLACK__BASE_URL": f"http://127.0.0.1:{platform_port}/api",
            "CHANNELS__SLACK__SIGNING_SECRET": "0123456789abcdef0123456789abcdef",
            "CHANNELS__SLACK__BOT_TOKEN": "xoxb-bench",
            "CHANNELS__LARK__ENABLED": "true",
            "CHANNELS__LARK__BASE_URL": f"http://127.0.0.1:{platform_port}",
            "CHANNELS__LARK__APP_ID": "cli_0123456789abcdef",
            "CHANNELS__LARK__APP_SECRET": "bench-app-secret-0123456789",
            "CHANNELS__LARK__VERIFICATION_TOKEN": "bench-verification-token",
            "CHANNELS__LARK__ENCRYPT_KEY": "bench-encrypt-key-0123456789",
        }
        if sockets:
            platform = f"http://127.0.0.1:{sockets}"
            env |= {"CHANNELS__SLACK__ENABLED": "false", "CHANNELS__LARK__ENABLED": "false"}
            env |= {f"CHANNELS__{kind.upper()}__{key}": value for key, value in {"ENABLED": "true", "DELIVERY": "socket", "BASE_URL": platform}.items()}
            if kind == "slack":
                env |= {"CHANNELS__SLACK__BASE_URL": f"{platform}/api", "CHANNELS__SLACK__APP_TOKEN": "xapp-bench"}
        return [program or binary, "serve"], {f"COUNTERSIGN__{key}": value for key, value in env.items()}, folder

    return command


def entry(name, kind, command, most=400_000, warm=3000, chatter=0, invalid=0):
    return dict(name=name, kind=kind, command=command, most=most, warm=warm, chatter=chatter, invalid=invalid)


HOOKS, BOTH = "[webhooks]", "[webhooks, workers]"
TABLE = [
    entry("bare axum, Slack", "slack", limit("bare")),
    entry("verify + parse, Slack", "slack", limit("verify")),
    entry("verify + parse + commit, Slack", "slack", limit("commit")),
    entry("countersign SQLite, Slack", "slack", ours("sqlite", HOOKS)),
    entry("countersign PostgreSQL, Slack", "slack", ours("postgres", HOOKS)),
    entry("countersign SQLite, Slack, with workers", "slack", ours("sqlite", BOTH), chatter=1),
    entry("countersign PostgreSQL, Slack, with workers", "slack", ours("postgres", BOTH), chatter=1),
    entry("countersign SQLite, Slack, bad signatures", "slack", ours("sqlite", HOOKS), invalid=100),
    entry("Bolt JS", "slack", node("bolt.cjs"), most=60_000, warm=6000),
    entry("verify + decrypt + parse, Lark", "lark", limit("verify")),
    entry("verify + decrypt + parse + commit, Lark", "lark", limit("commit")),
    entry("countersign SQLite, Lark", "lark", ours("sqlite", HOOKS)),
    entry("countersign PostgreSQL, Lark", "lark", ours("postgres", HOOKS)),
    entry("Lark Node SDK", "lark", node("lark.cjs"), most=60_000, warm=6000),
]
if earlier:
    TABLE += [
        entry("earlier SQLite, Slack", "slack", ours("sqlite", HOOKS, program=earlier)),
        entry("earlier PostgreSQL, Slack", "slack", ours("postgres", HOOKS, program=earlier)),
        entry("earlier SQLite, Lark", "lark", ours("sqlite", HOOKS, program=earlier)),
        entry("earlier SQLite, Slack, with workers", "slack", ours("sqlite", BOTH, program=earlier), chatter=1),
    ]
LATENCY = ["bare axum, Slack", "countersign SQLite, Slack", "countersign PostgreSQL, Slack", "Bolt JS"]


def first_answer(port, kind):
    answered = load(port, kind, connections=1, duration=1, max_requests=1)
    return answered["valid_2xx"] == 1


def measure(what, number, rate=0):
    folder = tempfile.mkdtemp(dir=scratch)
    os.mkdir(f"{folder}/data")
    port = free_port()
    command, env, cwd = what["command"](port, folder, what["kind"])
    log = f"{folder}/data/log"
    began = time.perf_counter()
    process = spawn(command, SERVER, dict(env, PORT=str(port)), cwd, log)
    try:
        listens(port, process)
        answered = first_answer(port, what["kind"])
        while not answered and time.perf_counter() - began < 120:
            answered = first_answer(port, what["kind"])
        first_ms = (time.perf_counter() - began) * 1e3
        time.sleep(0.5)
        pids = tree(process.pid)
        idle = memory_mib(pids)
        load(port, what["kind"], connections=args.connections, duration=20, max_requests=what["warm"], chatter=what["chatter"])
        pids = tree(process.pid)
        database = postgres.pids() if postgres else []
        before, there = cpu_us(pids), cpu_us(database)
        seconds = args.seconds if not rate else max(6, args.seconds)
        options = dict(connections=args.connections if not rate else 16, duration=seconds, chatter=what["chatter"], invalid=what["invalid"])
        options["max_requests"] = int(min(what["most"], 110_000 * seconds))
        if rate:
            options["rate"] = rate
        row = load(port, what["kind"], **options)
        count = max(1, row["requests"])
        wrong = row["valid_non2xx"] + row["invalid_accepted"] + row["errors"] + row["unanswered"]
        row.update(
            name=what["name"], round=number, first_ms=first_ms, first_ok=answered, wrong=wrong, asked_rate=rate,
            cpu=(cpu_us(pids) - before) / count, database_cpu=(cpu_us(database) - there) / count if postgres else 0.0,
            idle_rss=idle[0], idle_pss=idle[1],
        )
        row["load_rss"], row["load_pss"] = memory_mib(pids)
        print(
            f"round {number}  {what['name']:46s} {row['rps']:8.0f}/s  p50 {row['p50_us']:6d}  p99 {row['p99_us']:6d} us  cpu {row['cpu']:7.1f} + {row['database_cpu']:5.1f} us"
            f"  first {first_ms:5.0f} ms  memory {idle[1]:4.0f} / {row['load_pss']:4.0f} MiB  generator {row['loadgen_cpu_pct']}%  wrong {wrong}",
            file=sys.stderr, flush=True,
        )
        if rows_file:
            rows_file.write(json.dumps(row) + "\n")
            rows_file.flush()
        return row
    except RuntimeError as error:
        tail = open(log, errors="replace").read()[-600:]
        print(f"round {number}  {what['name']}: {error}\n{tail}", file=sys.stderr, flush=True)
        return None
    finally:
        stop(process)
        shutil.rmtree(folder, ignore_errors=True)


def rounds(entries, rate=0):
    rows = {what["name"]: [] for what in entries}
    for number in range(args.rounds):
        for what in entries if number % 2 == 0 else entries[::-1]:
            row = measure(what, number, rate)
            if row:
                rows[what["name"]].append(row)
    return rows


def middle(rows, key, digits=0):
    values = [row[key] for row in rows]
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def ratios(rows, one, other, key):
    """Of the same rounds: median and extremes; none where one of the two is missing."""
    by_round = {row["round"]: row[key] for row in rows.get(other, [])}
    values = [row[key] / by_round[row["round"]] for row in rows.get(one, []) if by_round.get(row["round"])]
    return (statistics.median(values), min(values), max(values)) if values else None


def verdicts(rows, wanted):
    print("\n| what | wanted | seen: median (range) of the rounds' ratios | |")
    print("|---|---|---|---|")
    for text, one, other, key, bound, at_least in wanted:
        seen = ratios(rows, one, other, key)
        if seen:
            good = seen[0] >= bound if at_least else seen[0] <= bound
            print(f"| {text} | {'≥' if at_least else '≤'} {bound} | {seen[0]:.2f} ({seen[1]:.2f}–{seen[2]:.2f}) | {'holds' if good else '**falls short**'} |")


def table(entries):
    rows = rounds(entries)
    print(f"\n## One core, closed loop\n\n{args.connections} connections, {args.rounds} alternating rounds of {args.seconds:g} s, medians (range).\n")
    print("| server | events/s | p50 µs | p99 µs | CPU µs an event | + database's | first 2xx ms | idle / loaded PSS MiB | wrong answers |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, found in rows.items():
        if found:
            base = f"{middle(found, 'database_cpu', 1)}" if "PostgreSQL" in name else ""
            memory = f"{statistics.median(row['idle_pss'] for row in found):.0f} / {statistics.median(row['load_pss'] for row in found):.0f}"
            wrong = sum(row["wrong"] for row in found)
            print(f"| {name} | {middle(found, 'rps')} | {middle(found, 'p50_us')} | {middle(found, 'p99_us')} | {middle(found, 'cpu', 1)} | {base} | {middle(found, 'first_ms')} | {memory} | {wrong} |")
    verdicts(rows, [
        ("Slack on SQLite against the baseline that commits, throughput", "countersign SQLite, Slack", "verify + parse + commit, Slack", "rps", 0.75, True),
        ("Lark on SQLite against the baseline that commits, throughput", "countersign SQLite, Lark", "verify + decrypt + parse + commit, Lark", "rps", 0.75, True),
        ("Slack on SQLite against Bolt JS, throughput", "countersign SQLite, Slack", "Bolt JS", "rps", 3.2, True),
        ("Slack on PostgreSQL against Bolt JS, throughput", "countersign PostgreSQL, Slack", "Bolt JS", "rps", 2.5, True),
        ("Lark on SQLite against the Lark Node SDK, throughput", "countersign SQLite, Lark", "Lark Node SDK", "rps", 2.4, True),
        ("Slack on SQLite against verify + parse, CPU", "countersign SQLite, Slack", "verify + parse, Slack", "cpu", 3, False),
        ("Slack on PostgreSQL against verify + parse, CPU", "countersign PostgreSQL, Slack", "verify + parse, Slack", "cpu", 2, False),
        ("Lark on SQLite against verify + decrypt + parse, CPU", "countersign SQLite, Lark", "verify + decrypt + parse, Lark", "cpu", 3, False),
        ("Lark on PostgreSQL against verify + decrypt + parse, CPU", "countersign PostgreSQL, Lark", "verify + decrypt + parse, Lark", "cpu", 2, False),
        ("Slack on SQLite against the earlier binary, throughput", "countersign SQLite, Slack", "earlier SQLite, Slack", "rps", 0.97, True),
        ("Slack on PostgreSQL against the earlier binary, throughput", "countersign PostgreSQL, Slack", "earlier PostgreSQL, Slack", "rps", 0.97, True),
        ("Lark on SQLite against the earlier binary, throughput", "countersign SQLite, Lark", "earlier SQLite, Lark", "rps", 0.97, True),
        ("bad signature against an accepted event, CPU", "countersign SQLite, Slack, bad signatures", "countersign SQLite, Slack", "cpu", 0.85, False),
    ])
    mine = [row for name, found in rows.items() if name.startswith("countersign") for row in found]
    for text, key, bound in [("idle memory, MiB PSS", "idle_pss", 24), ("loaded memory, MiB PSS", "load_pss", 48), ("start to the first 2xx, ms", "first_ms", 100)]:
        if mine:
            worst = max(statistics.median(row[key] for row in found) for name, found in rows.items() if name.startswith("countersign") and found)
            print(f"| {text}, the worst of ours | ≤ {bound} | {worst:.0f} | {'holds' if worst <= bound else '**falls short**'} |")


def latency(entries):
    rows = rounds(entries, args.rate)
    print(f"\n## One core, {args.rate:g} events a second\n\nOpen loop, 16 connections, latency from the time at which the event was due.\n")
    print("| server | p50 µs | p99 µs | p99.9 µs | CPU µs an event | wrong answers |")
    print("|---|---|---|---|---|---|")
    for name, found in rows.items():
        if found:
            print(f"| {name} | {middle(found, 'p50_us')} | {middle(found, 'p99_us')} | {middle(found, 'p999_us')} | {middle(found, 'cpu', 1)} | {sum(row['wrong'] for row in found)} |")
    verdicts(rows, [(f"p99 of Slack on {name} against Bolt JS", f"countersign {name}, Slack", "Bolt JS", "p99_us", 1, False) for name in ("SQLite", "PostgreSQL")])


# --- sockets: the platform floods whoever connects

SOCKET_PEERS = {
    "Slack's Node client": ("slack", lambda work, kind: ["node", f"{work}/peers/slack-socket.cjs"]),
    "Slack's Python client": ("slack", lambda work, kind: [f"{work}/peers/venv/bin/python", f"{work}/peers/sockets.py", kind]),
    "Lark's Node client": ("lark", lambda work, kind: ["node", f"{work}/peers/lark-socket.cjs"]),
    "Lark's Python client": ("lark", lambda work, kind: [f"{work}/peers/venv/bin/python", f"{work}/peers/sockets.py", kind]),
}
WINDOW = 64


def flooded(name, kind, connections, command, number):
    """One run: `command` gets the platform's port and a folder, and gives what to start."""
    folder, port = tempfile.mkdtemp(dir=scratch), free_port()
    os.mkdir(f"{folder}/data")
    log = f"{folder}/data/log"
    options = dict(kind=kind, port=port, window=WINDOW, connections=connections, duration=args.seconds, warm=3000)
    flood = subprocess.Popen(
        pinned(OTHERS, [f"{work}/bin/flood"] + [word for key, value in options.items() for word in ("--" + key, str(value))]),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
    )
    process = None
    try:
        listens(port, flood)
        argv, env, cwd = command(port, folder)
        process = spawn(argv, SERVER, env, cwd, log)
        if flood.stdout.readline().strip() != "warm":
            raise RuntimeError("it did not connect, or acknowledges nothing")
        pids = tree(process.pid)
        before = cpu_us(pids)
        row = json.loads(flood.stdout.readline())
        row.update(name=name, round=number, cpu=(cpu_us(pids) - before) / max(1, row["events"]))
        print(f"round {number}  {name:46s} {row['rps']:8.0f}/s  cpu {row['cpu']:7.1f} us  odd {row['odd']}", file=sys.stderr, flush=True)
        if rows_file:
            rows_file.write(json.dumps(row) + "\n")
            rows_file.flush()
        return row
    except RuntimeError as error:
        tail = open(log, errors="replace").read()[-600:] if os.path.exists(log) else ""
        print(f"round {number}  {name}: {error}\n{tail}", file=sys.stderr, flush=True)
        return None
    finally:
        for one in filter(None, [process, flood]):
            stop(one)
        shutil.rmtree(folder, ignore_errors=True)


def sockets(chosen):
    entries = []
    for kind in ["slack", "lark"]:
        for database, label in [("sqlite", "SQLite"), ("postgres", "PostgreSQL")][: 2 if postgres else 1]:
            mine = lambda port, folder, kind=kind, database=database: ours(database, HOOKS, sockets=port)(free_port(), folder, kind)
            entries.append((f"countersign {label}, {kind.title()} socket", kind, 2, mine))
    for name, (kind, argv) in SOCKET_PEERS.items():
        if os.path.exists(argv(work, kind)[0]) or shutil.which(argv(work, kind)[0]):
            peer = lambda port, folder, kind=kind, argv=argv: (argv(work, kind), {"PLATFORM": f"http://127.0.0.1:{port}", "NODE_ENV": "production"}, f"{work}/peers")
            entries.append((name, kind, 1, peer))
    entries = [one for one in entries if chosen(one[0])]
    if not entries:
        return
    rows = {name: [] for name, *_ in entries}
    for number in range(args.rounds):
        for name, kind, connections, command in entries if number % 2 == 0 else entries[::-1]:
            row = flooded(name, kind, connections, command, number)
            if row:
                rows[name].append(row)
    print(f"\n## Sockets, one core\n\n{WINDOW} unacknowledged events at a time, {args.rounds} alternating rounds of {args.seconds:g} s, medians (range). Ours stores every event; the clients store nothing.\n")
    print("| client | events/s | CPU µs an event | odd frames |")
    print("|---|---|---|---|")
    for name, found in rows.items():
        if found:
            print(f"| {name} | {middle(found, 'rps')} | {middle(found, 'cpu', 1)} | {sum(row['odd'] for row in found)} |")
    verdicts(rows, [
        (f"{name} on {label} against the vendor's client for {language}, throughput", f"countersign {label}, {name} socket", f"{name}'s {language} client", "rps", 1.5, True)
        for name in ["Slack", "Lark"] for label in ["SQLite", "PostgreSQL"] for language in ["Node", "Python"]
    ])


# --- growth: the same events into an empty database and into a full one

SERIES = {
    "sqlite": ("WITH RECURSIVE series(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < {count})", "series", "randomblob(16)", "lower(hex(randomblob(16)))"),
    "postgres": ("", "generate_series(1, {count}) AS series(n)", "decode(md5(random()::text || n), 'hex')", "md5(random()::text || n)"),
}


def filling(database):
    """Statements that make up old events, and turns that wait for their review."""
    start, series, key, text = SERIES[database]
    many = lambda count: (start.format(count=count), series.format(count=count))
    with_events, events = many(args.events)
    with_reviews, reviews = many(args.reviews)
    words = "'" + "please roll the staging cluster back and tell me what changed " * 10 + "'"
    hour = 1_800_000_000_000
    return [
        f"""INSERT INTO inbox (id, event_key, message_key, channel, chat, person_key, kind, state, outcome, received_at, payload) {with_events}
            SELECT n, {key}, {key}, 'slack', 'C0CHAN' || (n % 50), {key}, 'message', 'done', 'not for us', {hour} + n, {words} FROM {events}""",
        f"""INSERT INTO lanes (id, chat_key, conversation, requester, owner, fence, lease_until, ready_at, wakes, turn_id) {with_reviews}
            SELECT 'lane' || n, {key}, '{{}}', 'U' || n, '', 1, 0, {hour} + 864000000, 1, 'turn_' || n FROM {reviews}""",
        f"""INSERT INTO turns (id, lane_id, chat_key, conversation_key, channel, chat, user_id, request, inbox_id, status, state, messages, events, said, created_at) {with_reviews}
            SELECT 'turn_' || n, 'lane' || n, {key}, {key}, 'slack', 'C' || n, 'U' || n, {words}, n, 'paused', '{{}}', 3, 5, 1, {hour} + n FROM {reviews}""",
        f"""INSERT INTO gates (id, turn_id, lane_id, kind, status, chat_key, person_key, channel, chat, user_id, request, digest, plan_version, card, quorum, ttl_ms, opened_at, expires_at, undeliverable) {with_reviews}
            SELECT 'rv_' || n, 'turn_' || n, 'lane' || n, 'plan_review', 'pending', {key}, {key}, 'slack', 'C' || n, 'U' || n, {words}, 'digest', 1, {words}, 1, 3600000, {hour}, {hour} + 864000000, 0 FROM {reviews}""",
        f"""INSERT INTO pending_reviews (review_key, chat_key, user_id, chat_id, run_id, overall_goal_ui, internal_plan, created_at, expires_at, review_id) {with_reviews}
            SELECT {text}, {key}, 'U' || n, 'C' || n, 'turn_' || n, {words}, {words}, {hour}, {hour} + 864000000, 'rv_' || n FROM {reviews}""",
    ]


def filled(database):
    """The address of a database with many events and reviews."""
    if database == "postgres":
        url = postgres.fresh()
    else:
        os.makedirs(f"{scratch}/full", exist_ok=True)
        url = f"sqlite://{scratch}/full/bench.db"
    environment = dict(os.environ, COUNTERSIGN__STORE__DATABASE_URL=url)
    subprocess.run([binary, "migrate"], env=environment, cwd=scratch, check=True, capture_output=True)
    if database == "postgres":
        for statement in filling(database):
            postgres.sql(statement, url.rsplit("/", 1)[1])
        postgres.sql("VACUUM ANALYZE", url.rsplit("/", 1)[1])
        return url
    with sqlite3.connect(f"{scratch}/full/bench.db") as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for statement in filling(database):
            connection.execute(statement)
    return url


def growth(databases):
    print(f"\n## {args.events:,} stored events and {args.reviews:,} pending reviews\n\nThe same load into an empty and into a full database, role webhooks, medians (range).\n")
    print("| database | events/s empty | full | CPU µs an event empty | full | + database's empty | full | first 2xx ms empty | full | idle / loaded PSS MiB empty | full |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for database, name in databases:
        kinds = [
            entry("empty " + name, "slack", ours(database, HOOKS)),
            entry("full " + name, "slack", ours(database, HOOKS, filled(database))),
        ]
        rows = rounds(kinds)
        empty, full = rows["empty " + name], rows["full " + name]
        if not empty or not full:
            continue
        memory = [f"{statistics.median(row['idle_pss'] for row in some):.1f} / {statistics.median(row['load_pss'] for row in some):.1f}" for some in (empty, full)]
        cells = [f"{middle(empty, key, digits)} | {middle(full, key, digits)}" for key, digits in (("rps", 0), ("cpu", 1), ("database_cpu", 1), ("first_ms", 0))]
        print(f"| {name} | {' | '.join(cells)} | {memory[0]} | {memory[1]} |")


def main():
    global postgres, platform_port
    only = [part for part in args.only.split(";") if part]
    chosen = lambda name: not only or any(part in name for part in only)
    entries = [what for what in TABLE if chosen(what["name"])]
    if not os.path.isdir(f"{work}/peers/node_modules"):
        entries = [what for what in entries if what["name"] not in ("Bolt JS", "Lark Node SDK")]
    over_sockets = not args.skip_sockets and chosen("countersign PostgreSQL, Slack socket")
    if over_sockets or any("PostgreSQL" in what["name"] for what in entries):
        try:
            postgres = Postgres()
        except RuntimeError as error:
            print(f"without PostgreSQL: {error}", file=sys.stderr)
            entries = [what for what in entries if "PostgreSQL" not in what["name"]]
    platform_port = free_port()
    platform = spawn([f"{work}/bin/limit", "bare"], OTHERS, dict(PORT=str(platform_port)))
    try:
        listens(platform_port, platform)
        one, five, fifteen = os.getloadavg()
        print(f"Cores: {os.cpu_count()}, pinned: {'yes' if PIN else 'no'}, load before: {one:.1f} {five:.1f} {fifteen:.1f}, {time.strftime('%Y-%m-%d %H:%M')}.")
        if not args.skip_table:
            table(entries)
        if not args.skip_latency:
            latency([what for what in entries if what["name"] in LATENCY])
        if not args.skip_sockets:
            sockets(chosen)
        if not args.skip_flat:
            growth([pair for pair in (("sqlite", "SQLite"), ("postgres", "PostgreSQL")) if pair[0] == "sqlite" or postgres])
    finally:
        stop(platform)
        if postgres:
            postgres.stop()
        shutil.rmtree(scratch, ignore_errors=True)


platform_port = 0
# Told to stop, it stops its servers.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
main()
