"""``knotwork lsp`` on the command line: what a person reads who starts it, and what others do not wait for."""

import subprocess
import sys

import pytest
from knotwork.runtime.interfaces.cli.commands import lsp
from knotwork.runtime.interfaces.cli.output import Misused


def test_without_its_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsp, "find_spec", lambda _: None)
    with pytest.raises(Misused) as refused:
        lsp.perform()
    assert refused.value.hint == "pip install 'knotwork[editor]'"


@pytest.mark.slow
def test_nothing_of_it_is_loaded_for_other_commands() -> None:
    code = (
        "import sys; from knotwork.runtime.interfaces.cli.commands import app\n"
        "sys.exit(any(name.startswith(('pygls', 'lsprotocol')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.slow
def test_what_is_printed_beside_the_protocol_goes_to_stderr() -> None:
    code = (
        "import sys\n"
        "from knotwork.runtime.interfaces.cli.commands.lsp import perform\n"
        "from knotwork.runtime.interfaces.lsp import features\n"
        "features.serve = lambda stdin, stdout, log: (print('a library talks'), stdout.write(b'said'), True)[-1]\n"
        "sys.exit(perform())"
    )
    done = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"said")
    assert b"a library talks" in done.stderr
