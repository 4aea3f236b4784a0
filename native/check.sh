#!/usr/bin/env bash
# Runs the addon under a checker:
#
#   native/check.sh valgrind [node]     memory; where valgrind is installed (Debian: valgrind); minutes
#   native/check.sh helgrind [node]     races of the addon's threads, by valgrind; minutes
#   native/check.sh asan [node]         memory; where the compiler has libasan
#   native/check.sh ubsan [node]        undefined behaviour; where the compiler has libubsan
#   native/check.sh tsan [node]         races; where the compiler has libtsan
#   native/check.sh coverage [node]     which lines of native/*.cc these programs reach, by gcov
#
# All but the first two run an own build of the addon, in a temporary folder. Programs: threads that start, end
# and are terminated while they capture; every program of the differential test; every part of the addon
# through the public object; and its functions with any arguments (npm run fuzz -- binding). V8's own code is
# not judged: what counts is a report with a frame of the addon in it. Exit code 1: there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=${1:-valgrind}
node=${2:-node}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
addon="$logs/longstack.node"
checked=(-r ./test/fixtures/native/checked.js)

# compile FLAGS…: the addon, with frame pointers, since its own frames are walked
compile() {
  local include
  include=$(dirname "$(dirname "$("$node" -p process.execPath)")")/include/node
  if [ "$tool" = coverage ]; then # notes and counts belong to an object each
    for source in native/*.cc; do
      g++ -c -std=c++20 -g -fPIC -fno-omit-frame-pointer -fno-exceptions -fno-rtti -fvisibility=hidden \
        -DNODE_GYP_MODULE_NAME=longstack -isystem "$include" "$@" "$source" -o "$logs/$(basename "$source" .cc).o"
    done
    g++ -shared "$@" "$logs"/*.o -o "$addon"
  else
    g++ -std=c++20 -g -fPIC -shared -fno-omit-frame-pointer -fno-exceptions -fno-rtti -fvisibility=hidden \
      -DNODE_GYP_MODULE_NAME=longstack -isystem "$include" "$@" native/*.cc -o "$addon"
  fi
}

# check PROGRAM…: runs a program of Node under the checker
check() {
  case $tool in
    valgrind)
      valgrind --quiet --smc-check=all-non-file --error-limit=no --num-callers=20 --leak-check=full --show-leak-kinds=definite,indirect \
        --suppressions=native/check.supp \
        --log-file="$logs/%p.log" "$node" "$@" ;;
    helgrind)
      valgrind --tool=helgrind --quiet --smc-check=all-non-file --error-limit=no --num-callers=20 \
        --history-level=approx --log-file="$logs/%p.log" "$node" "$@" ;;
    asan)
      # V8 leaves threads and heaps behind at exit: leaks are for valgrind to find.
      ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=0:handle_segv=1:log_path=$logs/asan" \
        LD_PRELOAD="$(g++ -print-file-name=libasan.so)" CHECKED_ADDON="$addon" "$node" "${checked[@]}" "$@" ;;
    ubsan)
      UBSAN_OPTIONS="print_stacktrace=1:log_path=$logs/ubsan" CHECKED_ADDON="$addon" "$node" "${checked[@]}" "$@" ;;
    tsan)
      # Node is not instrumented: of its memory only what the addon accesses is watched. ThreadSanitizer wants
      # addresses that are not randomized.
      TSAN_OPTIONS="report_bugs=1:report_signal_unsafe=0:history_size=4:exitcode=0:log_path=$logs/tsan" \
        LD_PRELOAD="$(g++ -print-file-name=libtsan.so)" CHECKED_ADDON="$addon" \
        setarch -R "$node" "${checked[@]}" "$@" ;;
    coverage)
      CHECKED_ADDON="$addon" "$node" "${checked[@]}" "$@" ;;
  esac
}

case $tool in
  valgrind | helgrind) command -v valgrind > /dev/null || { echo 'valgrind is not installed' >&2; exit 2; } ;;
  # The addon reads frames that are not its own: its walk is no business of the checker, what it stores is.
  asan) compile -O1 -fsanitize=address ;;
  ubsan) compile -O1 -fsanitize=undefined -fno-sanitize=vptr ;;
  tsan) compile -O1 -fsanitize=thread ;;
  coverage) compile -O0 --coverage ;;
  *) sed -n '2,15p' "$0" >&2; exit 2 ;;
esac

"$node" -e 'require("./examples/native-counter/build").build("examples/native-counter/counter.c", process.argv[1])' \
  "$logs/counter.node"

echo "── threads"
check test/fixtures/native/workers.js "${ROUNDS:-2}"
echo "── programs"
# libtsan itself ends the process where the stack overflows
[ "$tool" = tsan ] && except=--except=recursion,overflow || except=--except=
check test/fixtures/native/fire.js "--captures=${CAPTURES:-20000}" --workers=1 "$except" | cut -c 1-120
echo "── every part"
check test/fixtures/native/everything.js "${ROUNDS:-2}" "$logs/counter.node"
echo "── any arguments"
for seed in 1 2 3; do
  "$node" fuzz/helpers/binding-arguments.js "$seed" | check --expose-gc --unhandled-rejections=none fuzz/helpers/binding-calls.js
done

if [ "$tool" = coverage ]; then
  (cd "$logs" && gcov -n ./*.o 2> /dev/null | grep -A1 "^File '.*native/[a-z-]*\.\(cc\|h\)'" | grep -v '^--')
  exit
fi

# Of ThreadSanitizer's reports those in which the addon itself accesses the memory: it calls V8, whose own races
# have frames of the addon above them. What V8's headers read for it (v8-internal.h) lies in V8's heap, pages of
# which serve one isolate after another; Node, not instrumented, does not show how they are handed over.
races() {
  awk '
    /^WARNING: ThreadSanitizer/ { report = ""; is_own = 0; is_access = 0 }
    { report = report $0 "\n" }
    / (of size|read of|write of)/ { is_access = 1 }
    /^ +#[0-9]+ / && is_access && !/libtsan/ {
      if (/longstack[^ ]*\.node/ && !/v8::internal::Internals::/) is_own = 1
      is_access = 0
    }
    /^SUMMARY/ { if (is_own) printf "%s", report }
  ' "$1"
}

files=$(cd native && printf '%s|' *.cc *.h)
cat "$logs"/*.log "$logs"/asan.* "$logs"/ubsan.* > "$logs/all" 2> /dev/null || true
for log in "$logs"/tsan.*; do [ ! -f "$log" ] || races "$log" >> "$logs/all"; done
if grep -qE "longstack[^ ]*\.node|\b(${files%|}):[0-9]" "$logs/all"; then
  cat "$logs/all"
  echo 'the addon has a defect' >&2
  exit 1
fi
echo 'no report has a frame of the addon'
