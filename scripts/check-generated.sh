#!/usr/bin/env bash
# Fails when a generated file is not what its sources give. It generates in a
# copy of the tree, so the tree itself is never changed by a check.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
aside=(--exclude=.git --exclude=bin --exclude=.amends)
tar -c "${aside[@]}" . | tar -x -C "$copy"

# Generated code whose contract is gone would otherwise stay unnoticed.
find "$copy/proto" -name '*.pb.go' -delete
make -s -C "$copy" generate

if ! diff -r -u "${aside[@]}" . "$copy"; then
  echo "generated files differ from their sources; run 'make generate' and commit the result" >&2
  exit 1
fi
