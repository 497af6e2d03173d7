#!/usr/bin/env bash
# Runs every fuzz target of the repository for FUZZTIME (default 2s; a number of
# seconds with its unit), those of the parsers at the door for DOORTIME (default
# 12s each, a minute together), and prints a table. A finding is kept by Go under the
# package's testdata/fuzz, ends the run with 1 and says how to repeat it.
#
#   scripts/fuzz.sh [PATTERN]    only targets whose package/name matches
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

time="${FUZZTIME:-2s}"
doortime="${DOORTIME:-12s}"
# Message normaliser, order references and intents, amounts, bodies, signatures.
door='^(internal/masking:FuzzText|internal/triage:FuzzRead|internal/prose:FuzzRead|services/gateway/gateway:FuzzDecodePost|internal/webhook:FuzzVerify)$'
pattern="${1:-.}"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT

targets="$(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' internal services cmd |
  sed -E 's|/[^/]+_test\.go:func |:|' | sort -u | grep -E -- "$pattern")"
if [[ -z $targets ]]; then
  echo "no fuzz target matches $pattern" >&2
  exit 1
fi

failed=0
printf '%-44s %-22s %12s  %s\n' package target executions result
while IFS=: read -r package target; do
  long="$time"
  if [[ $package:$target =~ $door ]]; then
    long="$doortime"
  fi
  # -run ^$ leaves the other tests out; the seeds are run first, as tests.
  if go test -run '^$' -fuzz "^$target\$" -fuzztime "$long" -fuzzminimizetime 100x -timeout 10m "./$package" >"$log" 2>&1; then
    result=ok
  elif grep -qE '^ +context deadline exceeded$' "$log" && ! grep -q 'Failing input written' "$log"; then
    result=ok # the time was up inside a call: Go reports that as a failure (golang/go#48591)
  else
    result=FOUND
    failed=1
  fi
  executions="$(sed -nE 's/.*execs: ([0-9]+).*/\1/p' "$log" | tail -1)"
  printf '%-44s %-22s %12s  %s\n' "$package" "$target" "${executions:-seeds only}" "$result"
  if [[ $result == FOUND ]]; then
    sed 's/^/    /' "$log"
    kept="$(sed -nE 's|.*go test -run=Fuzz[^/]+/([0-9a-f]+).*|\1|p' "$log" | tail -1)"
    echo "    repeat: go test -run '^$target\$${kept:+/$kept}' ./$package"
  fi
done <<<"$targets"
exit "$failed"
