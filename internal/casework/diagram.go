package casework

import (
	"fmt"
	"slices"
	"strings"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Document gives the state machine as a page: a diagram of the moves between
// states, and the whole table.
func Document() string {
	var b strings.Builder
	b.WriteString("# State machine of a case\n\nGenerated from `internal/casework/table.go` by `make generate`; do not edit.\n\n" +
		"The diagram shows the moves between states. Left out, and in the table below: rows that leave the state as it is, and those that lead any open case to HUMAN_HANDOFF.\n\n```mermaid\nstateDiagram-v2\n")
	type move struct{ from, to amendsv1.CaseState }
	var moves []move
	on := map[move][]string{}
	for _, r := range Table {
		for _, from := range r.From {
			if r.To == Same || r.To == from || len(r.From) == len(live) {
				continue
			}
			m := move{from, r.To}
			if on[m] == nil {
				moves = append(moves, m)
			}
			if !slices.Contains(on[m], string(r.On)) {
				on[m] = append(on[m], string(r.On))
			}
		}
	}
	for _, m := range moves {
		start := StateName(m.from)
		if m.from == none {
			start = "[*]"
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", start, StateName(m.to), strings.Join(on[m], "<br/>"))
	}
	b.WriteString("    VERIFIED_CLOSED --> [*]\n```\n\nRows are tried from the top; the first whose guard holds applies.\n\n| row | from | on | guard | to | then |\n|---|---|---|---|---|---|\n")
	for _, r := range Table {
		to := "same"
		if r.To != Same {
			to = StateName(r.To)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.Name, fromWords(r.From), r.On,
			joinNames(r.When, func(g Guard) string { return g.Name }), to, joinNames(r.Then, func(e Effect) string { return e.Name }))
	}
	return b.String()
}

func fromWords(from []amendsv1.CaseState) string {
	switch {
	case len(from) == len(always):
		return "any"
	case len(from) == len(known):
		return "any, also closed"
	case len(from) == len(live):
		return "any open"
	case slices.Equal(from, []amendsv1.CaseState{none}):
		return "–"
	}
	return joinNames(from, StateName)
}

func joinNames[T any](list []T, name func(T) string) string {
	names := make([]string, len(list))
	for i, x := range list {
		names[i] = name(x)
	}
	return strings.Join(names, ", ")
}
