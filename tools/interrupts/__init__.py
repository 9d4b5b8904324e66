"""Signals at random moments, and what they leave: `python -m tools.interrupts`.

Ctrl-C (SIGINT) and SIGTERM are sent to fits in Python, in the command line, in a thread
beside the main one, and inside compiled code. Checkpointed fits are killed (SIGKILL).
After each, `trials` checks the exit code, the messages, the processes and files that
are left, and that the fit goes on to the answer of one that was not interrupted.
"""
