"""Becomes another program, as another user where asked, that ends when its parent does.

Run by path with `python -I -S`, so it imports nothing of the project:

    guard.py SIGNAL PARENT_PID UID:GID|- PROGRAM ARGUMENT...

A program of its own, because `preexec_fn` is not safe in a process with threads. Dropping privileges comes first: the
kernel clears the death signal when credentials change. The signal comes when the *thread* ends that started it.
"""

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Does not return."""
    death_signal, parent, account, *command = arguments
    if account != "-":
        uid, gid = map(int, account.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
    if os.getppid() != int(parent):
        sys.exit("the parent is gone")
    os.execv(command[0], command)  # noqa: S606 -- replacing this process is the purpose


if __name__ == "__main__":
    main(sys.argv[1:])
