#!/usr/bin/env python3
"""How long the language server takes from a keystroke to what is wrong with the text: for every example, or the files given.

    python3 benches/keystrokes.py [--neuroc PATH] [--keys 20] [FILE...]

Each keystroke writes or takes back a letter in a comment behind the last line, so that the text stays sound and all of it is looked at. Prints the median
and the longest time of each file in milliseconds, the slowest file last.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Server:
    """A server over pipes."""

    def __init__(self, program: str) -> None:
        self.process = subprocess.Popen([program, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, number=1)
        while self.receive().get("id") != 1:
            pass
        self.send("initialized", {})

    def send(self, method: str, params: dict, number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            message["id"] = number
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def receive(self) -> dict:
        length = 0
        while (line := self.process.stdout.readline().strip()):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(self.process.stdout.read(length))

    def told(self, version: int) -> None:
        """Waits until it has told what is wrong with a version."""
        while True:
            message = self.receive()
            if message.get("method") == "textDocument/publishDiagnostics" and message["params"].get("version") == version:
                return


def times(server: Server, path: pathlib.Path, keys: int) -> list[float]:
    """Milliseconds of each keystroke in a file."""
    text = path.read_text().rstrip("\n") + "\n// "
    uri = path.as_uri()
    line, column = text.count("\n"), 3
    server.send("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "neuro", "version": 1, "text": text}})
    server.told(1)
    taken = []
    for version in range(2, keys + 2):
        written = version % 2 == 0
        end = {"line": line, "character": column + (0 if written else 1)}
        change = {"range": {"start": {"line": line, "character": column}, "end": end}, "text": "x" if written else ""}
        began = time.perf_counter()
        server.send("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]})
        server.told(version)
        taken.append(1e3 * (time.perf_counter() - began))
    server.send("textDocument/didClose", {"textDocument": {"uri": uri}})
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neuroc", default=str(ROOT / "target/release/neuroc"))
    parser.add_argument("--keys", type=int, default=20, help="keystrokes in each file")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    asked = parser.parse_args()
    files = asked.files or sorted([*ROOT.glob("examples/*.neuro"), *ROOT.glob("examples/*/*.neuro")])
    server = Server(asked.neuroc)
    rows = [(statistics.median(taken), max(taken), path) for path in files if (taken := times(server, path.resolve(), asked.keys))]
    print(f"{'median':>8} {'longest':>8}   ms")
    for median, longest, path in sorted(rows):
        print(f"{median:8.1f} {longest:8.1f}   {path.name}")


if __name__ == "__main__":
    main()
