#!/usr/bin/env bash
# Guards the contracts in proto/: what could be read yesterday can be read today.
#
#   scripts/contracts.sh check     lint, compare with proto/baseline.binpb, and
#                                  show that the comparison can fail
#   scripts/contracts.sh baseline  take the contracts as they are for the baseline
#
# The baseline is the compiled form of what was agreed so far. An addition to a
# contract belongs to it from the start, so the check also fails while the
# baseline lacks one. A breaking change enters it only with ACCEPT_BREAKING=yes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

baseline=$PWD/proto/baseline.binpb
buf=$(scripts/tool.sh buf)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

compile() { "$buf" build proto --exclude-source-info -o "$1"; }
compare() { "$buf" breaking proto --exclude-imports --against "$baseline"; }

# prove_gate renumbers one field in a copy of the contracts: a gate that lets
# that pass guards nothing.
prove_gate() {
  local contract=proto/amends/v1/envelope.proto found
  cp -R buf.yaml proto third_party "$scratch"
  sed -i.before 's/^  string tenant = 3 /  string tenant = 1003 /' "$scratch/$contract"
  if cmp -s "$contract" "$scratch/$contract"; then
    echo "contracts: $contract has no field to renumber any more; give the proof another one" >&2
    return 1
  fi
  if found=$(cd "$scratch" && compare) || [[ $found != *'Previously present field "3"'* ]]; then
    echo "contracts: a renumbered field was not found by the breaking check" >&2
    echo "$found" >&2
    return 1
  fi
}

case ${1:-} in
check)
  "$buf" lint
  compare
  compile "$scratch/current.binpb"
  if ! cmp -s "$scratch/current.binpb" "$baseline"; then
    echo "contracts: the contracts have grown; run 'make baseline' and commit it with them" >&2
    exit 1
  fi
  prove_gate
  ;;
baseline)
  if [[ -e $baseline && ${ACCEPT_BREAKING:-} != yes ]] && ! compare; then
    echo "contracts: this breaks what others can read; ACCEPT_BREAKING=yes takes it for the baseline all the same" >&2
    exit 1
  fi
  compile "$baseline"
  ;;
*)
  echo "usage: scripts/contracts.sh check|baseline" >&2
  exit 2
  ;;
esac
