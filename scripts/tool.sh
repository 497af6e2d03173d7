#!/usr/bin/env bash
# Prints the path of a pinned development tool, building it on first use:
#
#   scripts/tool.sh buf
#
# tools/NAME/go.mod names the package (its tool directive) and pins the version.
# The binary is kept per version, outside the repository, so that a build is
# paid once for each machine; a changed pin builds a new one.
set -euo pipefail

name=${1:?usage: scripts/tool.sh NAME}
module=$(cd "$(dirname "${BASH_SOURCE[0]}")/../tools/$name" && pwd)

package=$(awk '$1 == "tool" { print $2 }' "$module/go.mod")
version=$(awk -v package="$package" '
  $1 == "require" { sub(/^require +/, "") }
  $2 ~ /^v/ && index(package "/", $1 "/") == 1 { print $2 }' "$module/go.mod")
if [[ -z $package || -z $version ]]; then
  echo "$module/go.mod: no tool directive with a pinned version" >&2
  exit 1
fi

directory=${XDG_CACHE_HOME:-$HOME/.cache}/amends/tools/$name@$version
binary=$directory/$name
if [[ ! -x $binary ]]; then
  echo "building $name $version, once for this machine" >&2
  mkdir -p "$directory"
  # Into a name of its own, then renamed: an interrupted or a parallel build
  # never leaves half a binary behind.
  partial=$(mktemp "$directory/.build.XXXXXX")
  trap 'rm -f "$partial"' EXIT
  go -C "$module" build -buildvcs=false -mod=readonly -trimpath -o "$partial" "$package"
  mv "$partial" "$binary"
fi
echo "$binary"
