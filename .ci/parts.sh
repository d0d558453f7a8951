# Sourced by run and deep: parts, their times, and virtual environments of their own.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Nothing of the user's is read or written: models, caches and runs of this run live and end with it.
export KNOTWORK_HOME="$work/home" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
# As on anybody's machine a module is compiled once, not in each of the processes that the tests start.
export PYTHONPYCACHEPREFIX="$work/bytecode"
unset PYTHONDONTWRITEBYTECODE
unset KNOTWORK_LLM KNOTWORK_CACHE KNOTWORK_DEBUG ANOT_DEBUG OPENAI_API_KEY ANTHROPIC_API_KEY

passed=0
failed=0
table=() # a line for each part that has ended

part() { # part NAME COMMAND...: run a part; keep its seconds and how it ended
    local name=$1 begun=$SECONDS word=passed
    shift
    printf '\n=== %s\n' "$name"
    if "$@"; then passed=$((passed + 1)); else word=FAILED failed=$((failed + 1)); fi
    table+=("$(printf '  %-30s %5d s  %s' "$name" $((SECONDS - begun)) "$word")")
    printf -- '--- %s: %s in %d s\n' "$name" "$word" $((SECONDS - begun))
}

readme() { # readme N: print the README's Nth command, as a newcomer would paste it
    sed -n '/^```sh$/,/^```$/p' README.md | grep -v '^```' | sed -n "${1}p"
}

in_venv() { # in_venv NAME COMMAND-LINE: run a command line in the virtual environment NAME, made if it is not there
    [ -d "$work/$1" ] || "$python" -m venv "$work/$1" || return 1
    (. "$work/$1/bin/activate" && eval "$2")
}

failures() { # failures FILE: print the lines in which pytest names the tests that failed
    grep -aE '^(FAILED|ERROR) ' "$1"
}
