# Shared by the scripts in tools/: where things are, and how progress is told. Sourced, not run.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build="$root/build"
started=$SECONDS

# say TEXT: one line of progress.
say() { printf '== %s\n' "$*"; }

# fail TEXT: one sentence on stderr, exit 1.
fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# step NAME COMMAND...: runs the command, tells how long it took, ends the script when it fails.
step() {
  local name=$1 from=$SECONDS
  shift
  say "$name"
  "$@" || fail "step '$name' failed: $*"
  say "$name: $((SECONDS - from)) s"
}

# The folder with models/, models-gguf/, golden/ and check/: $CORTIQ_FIXTURES, else ../shared when that exists, else empty.
find_fixtures() {
  if [ -n "${CORTIQ_FIXTURES+set}" ]; then
    printf '%s' "$CORTIQ_FIXTURES"
  elif [ -d "$root/../shared/check" ]; then
    (cd "$root/../shared" && pwd)
  fi
}

# Prints the comment block at the top of the calling script: its --help.
show_help() { sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"; }
