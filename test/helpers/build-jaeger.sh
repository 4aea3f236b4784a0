#!/usr/bin/env bash
# Builds the Jaeger that spans are sent to in tests, from the Go module proxy, once: .cache/jaeger/all-in-one.
# Needs Go and some two minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=v1.62.0
jaeger=$PWD/.cache/jaeger/all-in-one
if [ -x "$jaeger" ]; then exit; fi

if ! printf '%s\n' go1.22 "$(go env GOVERSION)" | sort -CV; then
  echo "Jaeger $version needs Go 1.22 or later; this is $(go env GOVERSION)." >&2
  exit 1
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
go mod init scratch 2> /dev/null
go mod edit -require="github.com/jaegertracing/jaeger@$version"
# Built where it stays, under another name, so that a build that was stopped leaves nothing that looks whole.
mkdir -p "$(dirname "$jaeger")"
CGO_ENABLED=0 GOFLAGS=-mod=mod go build -trimpath -ldflags='-s -w' -o "$jaeger.$$" github.com/jaegertracing/jaeger/cmd/all-in-one
mv "$jaeger.$$" "$jaeger"
