#!/usr/bin/python3 -IS
"""A stand-in for QEMU: takes its arguments, speaks its monitor protocol and sends home what a guest would, in a
fraction of a second. It boots nothing and measures nothing; it serves fault injection alone.

The steps' values follow from the kernel's release and from how many trials the run (named in the file RUN beside this
program) has already: a run that loses or repeats a trial has other values than one that was never interrupted.
"""

import hashlib
import io
import json
import os
import re
import select
import socket
import sys
import tarfile
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


def pause(seconds: float) -> None:
    """As time.sleep, which ends in an error under libfaketime."""
    select.select([], [], [], seconds)


def argument(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1]


def chardev(name: str) -> str:
    """Where a character device leads: `path=` or `fd=`."""
    found = [value for value in sys.argv if re.match(rf"\w+,id={name}\b", value)]
    return re.search(r"(?:path|fd)=([^,]+)", found[0])[1]


def serve(number: int, released: threading.Event) -> None:
    """The machine protocol: a greeting, then an answer to every command. Commands follow one another without lines."""
    line = socket.socket(fileno=number)
    version = {"qemu": {"major": 7, "minor": 2, "micro": 0}, "package": ""}
    line.sendall(json.dumps({"QMP": {"version": version, "capabilities": []}}).encode() + b"\r\n")
    received = ""
    while more := line.recv(65536):
        received += more.decode()
        while received.strip():
            try:
                message, end = json.JSONDecoder().raw_decode(received.lstrip())
            except ValueError:
                break
            received = received.lstrip()[end:]
            answer: object = {}
            if message["execute"] == "query-cpus-fast":
                cpus = int(argument("-smp").split(",")[0])
                answer = [{"cpu-index": cpu, "thread-id": os.getpid()} for cpu in range(cpus)]
            reply = {"return": answer} | ({"id": message["id"]} if "id" in message else {})
            line.sendall(json.dumps(reply).encode() + b"\r\n")
            if message["execute"] == "cont":
                released.set()


def results(release: str, script: str, trial: int, cpus: int) -> bytes:
    """A tar of the environment, and of a value for each step."""
    files = {
        "environment/uname": f"Linux guest {release} #1 SMP x86_64 GNU/Linux\n",
        "environment/files": "".join(f"/proc/cpuinfo:processor : {cpu}\n" for cpu in range(cpus)) + f"{CLOCK}:tsc\n",
        "environment/files-end": f"{CLOCK}:tsc\n",
        "settle.json": '{"mode": "fixed", "seconds": 0.00, "idle": null}\n',
    }
    for step in re.findall(r"^step (\S+) \d+ <<", script, re.MULTILINE):
        noise = int(hashlib.sha256(f"{step} {trial}".encode()).hexdigest()[:8], 16) % 1000 / 100
        level = 1000 + 10 * (int(hashlib.sha256(release.encode()).hexdigest()[:8], 16) % 3)
        files[f"{step}/stdout"] = f"value: {level + noise:.2f}\n"
        files[f"{step}/stderr"] = ""
        files[f"{step}/exit.json"] = '{"status": 0, "seconds": 0.10, "started": 3.10}\n'
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def main() -> None:
    if "--version" in sys.argv:
        print("QEMU emulator version 7.2.0 (a stand-in that boots nothing)")
        return
    if argument("-kernel") and "-S" not in sys.argv:
        sys.exit("the stand-in serves only a machine that waits for its monitor")
    released = threading.Event()
    for name in ("monitor", "observer"):
        threading.Thread(target=serve, args=(int(chardev(name)), released), daemon=True).start()
    released.wait()
    with open(f"{HERE}/settings.json") as stream:
        settings = json.load(stream)
    with open(argument("-initrd"), "rb") as stream:
        carried = stream.read()
    release = re.search(rb"boot/config-([^\0]+?)\0", carried)[1].decode()
    script = carried[carried.rindex(b"kduel/guest.sh\0") :].decode(errors="replace")
    trials = [name for name in os.listdir(settings["run"] + "/trials") if not name.startswith(".")]
    archive = results(release, script, len(trials), int(argument("-smp").split(",")[0]))
    digest = hashlib.sha256(archive).hexdigest()
    with open(chardev("console"), "wb", buffering=0) as console, open(chardev("results"), "wb", buffering=0) as port:
        console.write(f"[    0.000000] Linux version {release}\n[    1.000000] Run /init as init process\n".encode())
        began = time.monotonic()
        pause(settings["seconds"] / 2)
        port.write(b"KDUEL READY 3.00\n")
        pause(settings["seconds"] / 2)
        port.write(f"KDUEL DONE {3 + time.monotonic() - began:.2f} 0\n".encode())
        port.write(f"KDUEL BEGIN {len(archive)} {digest}\n".encode() + archive + b"\nKDUEL END\n")


main()
