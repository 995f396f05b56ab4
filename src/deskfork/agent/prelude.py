"""The one cell that runs in the guest's kernel before an agent's first: it defines `final_answer` there."""

from deskfork.core.types import FINAL_ANSWER_MIME

STOPPED = "FinalAnswerGiven"
"""Name of the exception by which `final_answer` ends its cell; its text is the answer as JSON."""
MAX_ANSWER_CHARS = 64 * 1024
"""Length of the answer as JSON."""

_SOURCE = '''
def _deskfork_install():
    import builtins, json
    from IPython import get_ipython
    from IPython.display import publish_display_data

    class {stopped}(BaseException):
        pass

    def final_answer(answer=None):
        """End the task with this answer; anything that JSON cannot hold is given as its text."""
        try:
            text = json.dumps({{"answer": answer}}, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            text = json.dumps({{"answer": str(answer)}})
        if len(text) > {limit}:
            raise ValueError("final_answer: the answer is longer than {limit} characters; give a short summary")
        publish_display_data({{"{mime}": text}})
        raise {stopped}(text)

    def leave():
        raise SystemExit

    builtins.final_answer = final_answer
    shell = get_ipython()
    if shell is not None:
        # A cell may have taken the name for a variable: the next one finds the function again.
        shell.events.register("pre_run_cell", lambda *_: shell.user_ns.__setitem__("final_answer", final_answer))
        shell.ask_exit = leave  # exit() and quit() would end the kernel, not just the cell
_deskfork_install()
del _deskfork_install
'''

PRELUDE = _SOURCE.format(stopped=STOPPED, limit=MAX_ANSWER_CHARS, mime=FINAL_ANSWER_MIME)
