"""What an agent is told that goes on in a session in which it was interrupted; never its prompt a second time."""

from duly.core.questions import Answered

AFTERWARDS = (
    "Your turn was ended while you waited for that, and commands that you had started were ended with it. Go on with"
    " the request for which you needed it from where you were, and do not repeat anything that has had effects outside"
    " of this session."
)
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


ALLOWED = "You asked to be allowed this: {text}. A person has allowed it{note}. It is allowed now when you ask again."
DENIED = (
    "You asked to be allowed this: {text}. It was not allowed{note}. Find another way, or end with what you have and"
    " say what is missing."
)
SAID = "You asked: {text}. The answer is: {said}"


def answered(given: Answered, lost: str | None) -> str:
    """Give what to say to an agent whose question was answered while its session waited."""
    note = f", with the note: {given.note}" if given.note else ""
    match given.answer:
        case "allow":
            told = ALLOWED.format(text=given.asked.text, note=note)
        case "text":
            told = SAID.format(text=given.asked.text, said=given.said)
        case "deny":
            told = DENIED.format(text=given.asked.text, note=note)
    return f"{resumed(lost)}\n\n{told}" if lost is not None else f"{told}\n\n{AFTERWARDS}"


def resumed(lost: str | None) -> str:
    """Give what to say; `lost`: the request itself, where the session has lost it."""
    return INTERRUPTED if lost is None else f"{LOST}\n\n{lost}"
