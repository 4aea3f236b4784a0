#!/usr/bin/env bash
# Builds FerretDB, which speaks MongoDB's protocol and keeps its data in SQLite, from the Go module proxy, once:
# .cache/ferretdb/ferretdb. Needs Go and some two minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=v1.24.2
ferretdb=$PWD/.cache/ferretdb/ferretdb
if [ -x "$ferretdb" ]; then exit; fi

if ! printf '%s\n' go1.24 "$(go env GOVERSION)" | sort -CV; then
  echo "FerretDB $version needs Go 1.24 or later; this is $(go env GOVERSION)." >&2
  exit 1
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
# Its own command runs only where it was built from a checkout (build/version/version.go)
cat > main.go << 'GO'
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: os.Args[1]},
		Handler:   "sqlite",
		SQLiteURL: os.Args[2],
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := server.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
GO
go mod init scratch 2> /dev/null
go mod edit -require="github.com/FerretDB/FerretDB@$version"
# Built where it stays, under another name, so that a build that was stopped leaves nothing that looks whole.
mkdir -p "$(dirname "$ferretdb")"
tags=ferretdb_no_postgresql
CGO_ENABLED=0 GOFLAGS=-mod=mod go build -trimpath -tags="$tags" -ldflags='-s -w' -o "$ferretdb.$$" .
mv "$ferretdb.$$" "$ferretdb"
