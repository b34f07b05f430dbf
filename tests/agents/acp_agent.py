"""An agent by the Agent Client Protocol for tests: it does what a script says, and writes down what it was asked.

`acp_agent.py SCRIPT.json WITNESS`: the script is a list of steps for each prompt in turn ({"turns": [[step, …], …]}),
and what happens before; the witness gets a line of JSON for each call that matters. No library: it also says what the
protocol has not.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SCRIPT: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
WITNESS = Path(sys.argv[2])
NUMBER = iter(range(1000, 10**6))
SESSION: dict[str, str] = {"id": ""}


def witness(what: str, **more: Any) -> None:
    with WITNESS.open("a") as file:
        file.write(json.dumps({"what": what, "pid": os.getpid(), **more}) + "\n")


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(kind: str, /, **more: Any) -> None:
    send(
        {"method": "session/update", "params": {"sessionId": SESSION["id"], "update": {"sessionUpdate": kind, **more}}}
    )


def heard() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        witness("input closed")
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def ask(step: dict[str, Any]) -> str:
    """Ask for a permission and give what was chosen; other calls meanwhile are only noted."""
    number = next(NUMBER)
    kinds = step.get("options", ["allow_once", "allow_always", "reject_once"])
    options = [{"optionId": f"id-{kind}", "name": kind, "kind": kind} for kind in kinds]
    call = {
        "toolCallId": step.get("tool", "t1"),
        "title": step.get("title", "bash"),
        "kind": step.get("kind", "execute"),
    }
    if "command" in step:
        call["rawInput"] = {"command": step["command"]}
    if "path" in step:
        call["locations"] = [{"path": step["path"]}]
    params = {"sessionId": SESSION["id"], "toolCall": call, "options": options}
    send({"id": number, "method": "session/request_permission", "params": params})
    while True:
        message = heard()
        if message.get("id") == number and "method" not in message:
            outcome = message["result"]["outcome"]
            chosen = str(outcome.get("optionId", outcome["outcome"]))
            witness("answer", chosen=chosen)
            return chosen
        witness("meanwhile", method=message.get("method"))


def until_cancelled() -> None:
    while True:
        message = heard()
        witness("meanwhile", method=message.get("method"))
        if message.get("method") == "session/cancel":
            return


def act(step: dict[str, Any], request: int) -> bool:
    """Do one step of a turn; True where the turn has been answered."""
    if step["do"] in ("ask", "hang_up_to_cancel", "error", "answer"):
        return answer(step, request)
    if step["do"] in ("say", "think", "update", "tool", "env"):
        tell(step)
    else:
        misbehave(step)
    return False


def tell(step: dict[str, Any]) -> None:
    match step["do"]:
        case "say":
            update("agent_message_chunk", content={"type": "text", "text": step["text"]})
        case "think":
            update("agent_thought_chunk", content={"type": "text", "text": step["text"]})
        case "update":
            update(step["kind"], **step.get("more", {}))
        case "tool":
            name, status = step.get("tool", "t1"), step.get("status", "completed")
            update("tool_call", toolCallId=name, title=step.get("title", "bash"), kind="execute", status="pending")
            update("tool_call_update", toolCallId=name, status=status)
        case "env":
            text = f"{step['name']}={os.environ.get(step['name'])}\n"
            update("agent_message_chunk", content={"type": "text", "text": text})


def answer(step: dict[str, Any], request: int) -> bool:
    match step["do"]:
        case "ask":
            if not ask(step).startswith("id-reject") or not step.get("gives_up"):
                return False
            send({"id": request, "result": {"stopReason": "end_turn"}})
        case "hang_up_to_cancel":
            until_cancelled()
            send({"id": request, "result": {"stopReason": step.get("stop", "cancelled")}})
        case "error":
            send({"id": request, "error": {"code": -32603, "message": step["message"], "data": step.get("data")}})
        case "answer":
            send({"id": request, "result": step["result"]})
    return True


def misbehave(step: dict[str, Any]) -> None:
    match step["do"]:
        case "noise":
            sys.stderr.write(step["text"])
            sys.stderr.flush()
        case "junk":
            sys.stdout.write(step["text"])
            sys.stdout.flush()
        case "long":
            sys.stdout.write("x" * step["bytes"] + "\n")
            sys.stdout.flush()
        case "shell":
            subprocess.run(["/bin/sh", "-c", step["line"]], check=False, cwd=SESSION["cwd"])
        case "write":
            Path(step["path"]).write_text("done")
        case "child":
            child = subprocess.Popen(["sleep", "300"], start_new_session=True)
            witness("child", child=child.pid)
        case "wait_for":
            while not Path(step["path"]).exists():
                time.sleep(0.01)
        case "exit":
            sys.stderr.write(step.get("last", ""))
            sys.stderr.flush()
            os._exit(step["status"])
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "close":
            os.close(1)
            time.sleep(300)
        case "hang":
            time.sleep(300)
        case "wrong_id":
            send({"id": 987654, "result": {"stopReason": "end_turn"}})
        case other:
            raise AssertionError(other)


def prompt(message: dict[str, Any]) -> None:
    text = "".join(block.get("text", "") for block in message["params"]["prompt"])
    witness("prompt", text=text, session=message["params"]["sessionId"], parts=message["params"]["prompt"])
    turns = SCRIPT["turns"]
    done = sum(json.loads(line)["what"] == "prompt" for line in WITNESS.read_text().splitlines()) - 1
    for step in turns[min(done, len(turns) - 1)]:
        if act(step, message["id"]):
            return
    result = {"stopReason": SCRIPT.get("stop", "end_turn")} | ({"usage": SCRIPT["usage"]} if "usage" in SCRIPT else {})
    send({"id": message["id"], "result": result})


def opened(message: dict[str, Any]) -> dict[str, Any]:
    SESSION["id"] = f"ses-{os.getpid()}" + (f"-{SESSION['id'].count('-') + 1}" if SESSION["id"] else "")
    SESSION["cwd"] = message["params"]["cwd"]
    witness("new", cwd=message["params"]["cwd"], session=SESSION["id"])
    return {"sessionId": SESSION["id"], **SCRIPT.get("session", {})}


def loaded(message: dict[str, Any]) -> dict[str, Any]:
    SESSION["id"] = message["params"]["sessionId"]
    witness("load", session=SESSION["id"])
    for line in [] if SCRIPT.get("empty") else WITNESS.read_text().splitlines():
        before = json.loads(line)
        if before["what"] == "prompt" and before["session"] == SESSION["id"]:
            update("user_message_chunk", content={"type": "text", "text": before["text"]})
            update("agent_message_chunk", content={"type": "text", "text": "what was said before"})
    more: dict[str, Any] = SCRIPT.get("session", {})
    return more


def main() -> None:
    witness("start", variables=sorted(name for name in os.environ if name.startswith("DULY_")))
    for step in SCRIPT.get("start", []):
        act(step, 0)
    while True:
        message = heard()
        method = message.get("method")
        if method == "initialize":
            version = SCRIPT.get("protocol", 1)
            info = {"name": "scripted", "version": "1"}
            able = {"loadSession": SCRIPT.get("loads", True)}
            result = {"protocolVersion": version, "agentInfo": info, "agentCapabilities": able}
            send({"id": message["id"], "result": SCRIPT.get("greeting", result)})
        elif method == "session/new":
            for step in SCRIPT.get("opening", []):
                act(step, message["id"])
            send({"id": message["id"], "result": opened(message)})
        elif method == "session/load":
            if SCRIPT.get("forgets"):
                send({"id": message["id"], "error": {"code": -32603, "message": "no such session"}})
            else:
                send({"id": message["id"], "result": loaded(message)})
        elif method in ("session/set_config_option", "session/set_model"):
            witness("model", **message["params"])
            for step in SCRIPT.get("choosing", []):
                act(step, message["id"])
            if "refuses_model" in SCRIPT:
                send({"id": message["id"], "error": {"code": -32602, "message": SCRIPT["refuses_model"]}})
            else:
                send({"id": message["id"], "result": {}})
        elif method == "session/prompt":
            prompt(message)
        else:
            witness("meanwhile", method=method)


main()
