# Sourced by the other scripts: the project's root as current folder, plain progress lines, clear failures.
# shellcheck shell=bash
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH" # where rustup puts cargo

# step <what> <command...>: runs it and says how long it took; what fails ends the script with its own status.
step() {
  local what=$1 start=$SECONDS
  shift
  echo "[quern] $what ..."
  "$@" || {
    local status=$?
    echo "[quern] $what: failed" >&2
    exit "$status"
  }
  echo "[quern] $what: done in $((SECONDS - start)) s"
}

# give_up <message>: one line that says what can't be had and what to do.
give_up() {
  echo "[quern] $1" >&2
  exit 1
}
