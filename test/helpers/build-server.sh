#!/usr/bin/env bash
# Builds a server that tests need, from the Go module proxy, once. Needs Go and some two minutes.
#
#   test/helpers/build-server.sh jaeger      that spans are sent to: .cache/jaeger/all-in-one
#   test/helpers/build-server.sh ferretdb    MongoDB's protocol, with SQLite: .cache/ferretdb/ferretdb
set -euo pipefail
cd "$(dirname "$0")/../.."

case ${1-} in
  jaeger)
    name=all-in-one version=v1.62.0 go=1.22 tags=
    module=github.com/jaegertracing/jaeger package=$module/cmd/all-in-one ;;
  ferretdb)
    name=ferretdb version=v1.24.2 go=1.24 tags=ferretdb_no_postgresql
    module=github.com/FerretDB/FerretDB package=. ;;
  *)
    echo "Usage: $0 jaeger|ferretdb" >&2
    exit 2 ;;
esac
binary=$PWD/.cache/$1/$name
if [ -x "$binary" ]; then exit; fi

if ! printf '%s\n' "go$go" "$(go env GOVERSION)" | sort -CV; then
  echo "$1 $version needs Go $go or later; this is $(go env GOVERSION)." >&2
  exit 1
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
# FerretDB's own command runs only where it was built from a checkout (build/version/version.go)
if [ "$package" = . ]; then cat > main.go << 'GO'
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
fi
go mod init scratch 2> /dev/null
go mod edit -require="$module@$version"
# Built where it stays, under another name, so that a build that was stopped leaves nothing that looks whole.
mkdir -p "$(dirname "$binary")"
CGO_ENABLED=0 GOFLAGS=-mod=mod go build -trimpath -tags="$tags" -ldflags='-s -w' -o "$binary.$$" "$package"
mv "$binary.$$" "$binary"
