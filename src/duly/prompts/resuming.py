"""What an agent is told that goes on in a session in which it was interrupted; never its prompt a second time."""

INTERRUPTED = (
    "You were interrupted while you worked on the last request of this session: the process that ran you was ended,"
    " and commands that you had started were ended with it. Go on with that request from where you were. Look first"
    " at what has been done already, and do not repeat anything that has had effects outside of this session, such as"
    " messages sent, commits pushed or orders placed."
)
LOST = (
    "You were interrupted while you worked on the request below, and this session shows nothing of it. Parts of it may"
    " have been done: look first at what there is, and do not repeat anything that has had effects outside of this"
    " session, such as messages sent, commits pushed or orders placed. The request was:"
)


def resumed(lost: str | None) -> str:
    """Give what to say; `lost`: the request itself, where the session has lost it."""
    return INTERRUPTED if lost is None else f"{LOST}\n\n{lost}"
