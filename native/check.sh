#!/usr/bin/env bash
# Runs the native engine under a checker of memory:
#
#   native/check.sh valgrind [node]     where valgrind is installed (Debian: valgrind); minutes
#   native/check.sh asan [node]         where the compiler has libasan: an own build of the addon, in a temporary folder
#
# Threads that start, end and are terminated while they capture, then every program of the differential test. V8's own
# code is not judged: what counts is a report with a frame of the addon in it. Exit code 1: there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=${1:-valgrind}
node=${2:-node}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

check() {
  case $tool in
    valgrind)
      valgrind --quiet --smc-check=all-non-file --error-limit=no --num-callers=20 --leak-check=full --show-leak-kinds=definite,indirect \
        --suppressions=native/check.supp \
        --log-file="$logs/%p.log" "$node" "$@" ;;
    asan)
      # V8 leaves threads and heaps behind at exit: leaks are for valgrind to find.
      ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=0:handle_segv=1:log_path=$logs/asan" \
        LD_PRELOAD="$(g++ -print-file-name=libasan.so)" LONGSTACK_CHECKED="$logs/longstack.node" "$node" -r ./test/fixtures/native/checked.js "$@" ;;
  esac
}

case $tool in
  valgrind) command -v valgrind > /dev/null || { echo 'valgrind is not installed' >&2; exit 2; } ;;
  asan)
    include=$(dirname "$(dirname "$("$node" -p process.execPath)")")/include/node
    # The addon reads frames that are not its own: its walk is no business of the checker, what it stores is.
    g++ -std=c++20 -O1 -g -fPIC -shared -fsanitize=address -fno-omit-frame-pointer -fno-exceptions -fno-rtti \
      -fvisibility=hidden -DNODE_GYP_MODULE_NAME=longstack -I"$include" native/*.cc -o "$logs/longstack.node" ;;
  *) sed -n '2,9p' "$0" >&2; exit 2 ;;
esac

echo "── threads"
check test/fixtures/native/workers.js "${ROUNDS:-2}"
echo "── programs"
check test/fixtures/native/fire.js "--captures=${CAPTURES:-20000}" --workers=1 | cut -c 1-120

files=$(cd native && printf '%s|' *.cc *.h)
if cat "$logs"/*.log "$logs"/asan.* 2> /dev/null | grep -qE "longstack[^ ]*\.node|\((${files%|}):"; then
  cat "$logs"/*.log "$logs"/asan.* 2> /dev/null || true
  echo 'the addon has a defect' >&2
  exit 1
fi
echo 'no report has a frame of the addon'
