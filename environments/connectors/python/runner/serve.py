"""Imports a module once and forks processes that have it: `python serve.py MODULE MEMORY_BYTES`.

This process runs nothing of the module but its import, so it answers whatever the module does. Requests come and answers
go over descriptor 3, in lines; numbers name the processes, and none is used twice:

    fork N              starts the process N
    to N JSON           brings it a message
    kill N              ends it, with what it has started

    ready               the module is imported
    failed JSON         it cannot be: {"message", "traceback"}
    from N JSON         what the process N says
    gone N HOW          it has ended
"""

import gc
import json
import os
import selectors
import signal
import socket
import sys
import time
import traceback

import descendants
import worker
from process_guard import PATIENCE, go_on_guarded, lead_group

CHANNEL = 3
# Longest line that a process may say, bytes.
LONGEST_LINE = 64 * 2**20
CHUNK = 2**16
# More than a link holds, bytes.
FULL_LINK = 2**22


class Child:
    def __init__(self, number: int, pid: int, link: socket.socket) -> None:
        self.number = number
        self.pid = pid
        self.link = link
        self.ended = readable_at_end_of(pid)
        self.said = bytearray()
        self.to_say = bytearray()


class Server:
    """Not for threads: a fork must find none."""

    def __init__(self, channel: socket.socket, functions: worker.Functions, memory_bytes: int) -> None:
        self.channel = channel
        self.functions = functions
        self.memory_bytes = memory_bytes
        self.selector = selectors.DefaultSelector()
        self.selector.register(channel, selectors.EVENT_READ)
        self.children: dict[int, Child] = {}
        # What the import has started stays as long as we do.
        self.own = set(descendants.children_of(os.getpid()))
        self.heard = bytearray()

    def run(self) -> None:
        while True:
            for key, events in self.selector.select():
                child = key.data
                if child is None:
                    if not self.hear():
                        return
                elif self.children.get(child.number) is child:
                    if key.fd == child.ended:
                        self.read_last(child)
                        continue
                    if events & selectors.EVENT_WRITE:
                        self.write(child)
                    if events & selectors.EVENT_READ:
                        self.read(child)

    def hear(self) -> bool:
        """Whether the other side is still there."""
        try:
            chunk = self.channel.recv(CHUNK)
        except ConnectionError:
            return False
        if not chunk:
            return False
        searched = len(self.heard)
        self.heard += chunk
        begin = 0
        while (end := self.heard.find(b"\n", max(begin, searched))) >= 0:
            self.obey(bytes(self.heard[begin:end]))
            begin = end + 1
        del self.heard[:begin]
        return True

    def obey(self, line: bytes) -> None:
        verb, number, *message = line.split(b" ", 2)
        child = self.children.get(int(number))
        if verb == b"fork":
            self.fork(int(number))
        elif child and verb == b"kill":
            self.end(child, "was killed")
        elif child:
            child.to_say += message[0] + b"\n"
            self.write(child)

    def fork(self, number: int) -> None:
        ours, theirs = socket.socketpair()
        try:
            pid = os.fork()
        except OSError as error:
            ours.close()
            theirs.close()
            self.say(f"gone {number} could not be started: {error}".encode())
            return
        if pid == 0:
            ours.close()
            lead_group(0)
            self.become_child(theirs)
        theirs.close()
        ours.setblocking(False)
        lead_group(pid)
        child = Child(number, pid, ours)
        self.children[number] = child
        self.selector.register(ours, selectors.EVENT_READ, child)
        if child.ended is not None:
            self.selector.register(child.ended, selectors.EVENT_READ, child)

    def become_child(self, link: socket.socket) -> None:
        """Does not return."""
        status = 1
        try:
            self.selector.close()
            self.channel.close()
            for other in self.children.values():
                other.link.close()
                if other.ended is not None:
                    os.close(other.ended)
            worker.serve(link, self.functions, self.memory_bytes)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def write(self, child: Child) -> None:
        try:
            while child.to_say:
                del child.to_say[: child.link.send(child.to_say[:CHUNK])]
        except BlockingIOError:
            pass
        except OSError:
            child.to_say.clear()  # it is gone, which its reading end finds too
        waits = selectors.EVENT_WRITE if child.to_say else 0
        self.selector.modify(child.link, selectors.EVENT_READ | waits, child)

    def read_last(self, child: Child) -> None:
        """It has ended, and all that it said is in its link. Others may hold that, too: its own end need not come."""
        self.read(child, FULL_LINK)
        if self.children.get(child.number) is child:
            self.end(child, "")

    def read(self, child: Child, most: int = CHUNK) -> None:
        try:
            chunk = child.link.recv(most)
        except BlockingIOError:
            return
        except ConnectionError:
            chunk = b""
        if not chunk:
            return self.end(child, "")
        searched = len(child.said)
        child.said += chunk
        begin = 0
        while (end := child.said.find(b"\n", max(begin, searched))) >= 0:
            self.say(b"from %d " % child.number + child.said[begin:end])
            begin = end + 1
        del child.said[:begin]
        if len(child.said) > LONGEST_LINE:
            self.end(child, f"said more than {LONGEST_LINE} bytes at once")

    def end(self, child: Child, why: str) -> None:
        del self.children[child.number]
        self.selector.unregister(child.link)
        child.link.close()
        if child.ended is not None:
            self.selector.unregister(child.ended)
            os.close(child.ended)
        how = self.finish(child)
        self.say(f"gone {child.number} {why or how}".encode())

    def finish(self, child: Child) -> str:
        """
        Ends a process and what it has started, and says how it ended. One that was ending already keeps its status. On Linux
        a process or session group is no way out: what a process leaves behind comes to its fork, and from there to us.
        """
        latest = time.monotonic() + PATIENCE
        descendants.end_below(child.pid, latest)
        for kill in (os.killpg, os.kill):
            try:
                kill(child.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        _, status = os.waitpid(child.pid, 0)
        known = self.own | {other.pid for other in self.children.values()}
        descendants.end_children(known, latest)
        code = os.waitstatus_to_exitcode(status)
        return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"

    def close(self) -> None:
        while self.children:
            _, child = self.children.popitem()
            self.finish(child)

    def say(self, line: bytes) -> None:
        self.channel.sendall(line + b"\n")


def readable_at_end_of(pid: int) -> int | None:
    """A descriptor, where the system has such: elsewhere the end of its link tells of a process's end."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def main() -> None:
    module, memory_bytes = sys.argv[1], int(sys.argv[2])
    go_on_guarded(CHANNEL)
    os.set_inheritable(CHANNEL, False)
    channel = socket.socket(fileno=CHANNEL)
    try:
        functions = worker.load(module)
    except BaseException as error:
        words = {"message": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        channel.sendall(b"failed " + json.dumps(words).encode() + b"\n")
        return
    # What is there by now is shared by all processes; a collection would copy it into each.
    gc.collect()
    gc.freeze()
    channel.sendall(b"ready\n")
    server = Server(channel, functions, memory_bytes)
    try:
        server.run()
    except ConnectionError:
        pass
    finally:
        server.close()


if __name__ == "__main__":
    main()
