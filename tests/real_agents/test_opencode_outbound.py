"""The real OpenCode of the tests asks nobody outside of this machine, counted by the kernel where it allows that."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from real_scene import real_opencode

INSIDE = """
import fcntl, json, socket, struct, sys
from pathlib import Path
sys.path[:0] = json.loads(sys.argv[1])
with socket.socket() as one:
    fcntl.ioctl(one, 0x8914, struct.pack("16sH14s", b"lo", 0x1 | 0x40, b""))  # the loopback is up
from fake_model import FakeModel, say
from opencode_scene import OpenCodeScene
def unroutable():
    names, figures = [line.split()[1:] for line in Path("/proc/net/snmp").read_text().splitlines() if line[:3] == "Ip:"]
    return int(dict(zip(names, figures))["OutNoRoutes"])
model = FakeModel()
scene = OpenCodeScene(Path(sys.argv[2]), model)
outcome = scene.perform(say("All is well."))
before = unroutable()
scene.close()
model.close()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    try:
        one.sendto(b"x", ("192.0.2.1", 53))
    except OSError:
        pass
print(json.dumps([outcome.word, before, unroutable() - before]))
"""


def test_a_turn_of_the_real_agent_asks_nobody_outside_of_this_machine(tmp_path: Path) -> None:
    real_opencode()
    apart = ["unshare", "--net", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no network namespace of our own")
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    told = subprocess.run(
        [*apart, sys.executable, "-c", INSIDE, json.dumps([str(Path(__file__).parent)]), str(tmp_path)],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    word, outside, counted = json.loads(told.stdout)
    assert (word, outside) == ("succeeded", 0)
    assert counted == 1, "the kernel counts what has no way out"
