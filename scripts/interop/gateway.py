"""Runs the gateway for the opt-in checks of this folder: the debug build, in a temporary folder, driven through the console API."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]


def say(text):
    print(text, flush=True)


def binary():
    """The debug build, made if need be; or the one that the command line names."""
    if len(sys.argv) > 1:
        return pathlib.Path(sys.argv[1]).resolve(strict=True)
    subprocess.run(["cargo", "build", "-q", "--bin", "countersign"], cwd=ROOT, check=True)
    meta = subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--no-deps"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return pathlib.Path(json.loads(meta.stdout)["target_directory"]) / "debug" / "countersign"


def folder():
    """A temporary folder for everything that a check downloads and writes."""
    return tempfile.TemporaryDirectory(prefix="countersign-interop-")


def npm(where, *packages):
    command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline", "--ignore-scripts", "--prefix", str(where), *packages]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def need(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        sys.exit(f"needs {', '.join(missing)}")


class Server:
    """A child process that listens; ended with the block."""

    def __init__(self, command, url, log):
        self.url = url
        self.log = open(log, "ab")
        self.child = subprocess.Popen(command, stdout=self.log, stderr=self.log)

    def __enter__(self):
        until = time.monotonic() + 180
        while True:
            try:
                urllib.request.urlopen(self.url, timeout=5).close()
                return self
            except urllib.error.HTTPError:
                return self  # It answers.
            except OSError:
                if self.child.poll() is not None or time.monotonic() > until:
                    sys.exit(f"it did not start: {pathlib.Path(self.log.name).read_text()[-2000:]}")
                time.sleep(0.2)

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait(20)
        self.log.close()


class Gateway:
    """A gateway of its own ledger and workspace; ended with the block."""

    def __init__(self, where, program, **settings):
        self.where = pathlib.Path(tempfile.mkdtemp(dir=where))
        workspace = self.where / "workspace"
        workspace.mkdir()
        (workspace / "notes.md").write_text("# Notes\n\n- ship the report\n", encoding="utf-8")
        values = {
            "SERVER__BIND": "127.0.0.1:0",
            "STORE__DATABASE_URL": f"sqlite://{self.where}/countersign.db",
            "TOOLS__WORKSPACE": str(workspace),
            **settings,
        }
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN_")}
        environment.update({f"COUNTERSIGN__{name}": value for name, value in values.items()})
        self.log = open(self.where / "log", "ab")
        self.child = subprocess.Popen(
            [program, "serve"], cwd=self.where, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log
        )

    def __enter__(self):
        line = self.child.stdout.readline().decode().strip()
        ready = re.fullmatch(r"countersign ready: (http://[^/]+)/console/", line)
        if not ready:
            sys.exit(f"no ready line but {line!r}: {(self.where / 'log').read_text()[-2000:]}")
        self.base = ready[1]
        return self

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait(40)
        self.log.close()

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"content-type": "application/json"}, method=method)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
            return json.load(answer)

    def says(self, chat, text):
        say(f"  [user] {text}")
        self.call("POST", "/api/v1/messages", {"chat_id": chat, "user_id": "ada", "text": text})

    def heard(self, chat):
        return [item for item in self.call("GET", f"/api/v1/messages?chat={chat}")["items"] if item["from"] == "bot"]

    def wait(self, chat, kinds, seconds):
        """The first message of one of these kinds; prints it."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for item in self.heard(chat):
                if item["kind"] in kinds:
                    words = " / ".join(line.strip() for line in item["text"].splitlines() if line.strip())
                    say(f"  [bot:{item['kind']}] {words[:400]}")
                    return item
            time.sleep(0.2)
        say(f"  nothing of {kinds} within {seconds} s; the log ends with:\n{(self.where / 'log').read_text()[-1500:]}")
        return None

    def approves(self, chat):
        reviews = self.call("GET", "/api/v1/reviews")["items"]
        review = next(review for review in reviews if review["chat_id"] == chat)
        self.call("POST", f"/api/v1/reviews/{review['id']}/decision", {"decision": "approve", "user_id": "ada"})
        say("  [user] presses OK")

    def warnings(self):
        """What the gateway logged about the model."""
        text = re.sub(r"\x1b\[[0-9;]*m", "", (self.where / "log").read_text())
        return [line for line in text.splitlines() if "did not answer" in line or "too long" in line]
