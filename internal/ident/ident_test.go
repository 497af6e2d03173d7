package ident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ident"
)

// Bug B55: text used as a subject token without checks.
func TestTokenB55(t *testing.T) {
	for _, bad := range []string{"", "8472.>", "*", ">", "a b", "a.b", "a\nb", "ord\u202e8472", strings.Repeat("x", 65), strings.Repeat("8", 300), "é"} {
		if ident.Token(bad) == nil {
			t.Errorf("Token(%q) accepted", bad)
		}
	}
	for _, good := range []string{"8472", "req-8472", "acme-in", "cust_5519", strings.Repeat("x", 64)} {
		if err := ident.Token(good); err != nil {
			t.Errorf("Token(%q): %v", good, err)
		}
	}
}

func TestDeriveIsStableOrderedAndSeparatesItsParts(t *testing.T) {
	at := time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)
	if ident.Derive(at, "a", "b") != ident.Derive(at, "a", "b") {
		t.Error("the same parts gave two ids")
	}
	if ident.Derive(at, "ab", "c") == ident.Derive(at, "a", "bc") {
		t.Error("parts run together")
	}
	if ident.Derive(at, "z") >= ident.Derive(at.Add(time.Millisecond), "a") {
		t.Error("ids are not ordered by time")
	}
	if got, ok := ident.TimeOf(ident.Derive(at, "a")); !ok || !got.Equal(at) {
		t.Errorf("TimeOf gives %s, %t", got, ok)
	}
	if _, ok := ident.TimeOf("short"); ok {
		t.Error("TimeOf reads a time from something else")
	}
	id := ident.Derive(at, "a")
	if len(id) != 36 || id[14] != '7' {
		t.Errorf("id %q is not a version 7 UUID", id)
	}
}

func TestCaseDependsOnEveryPart(t *testing.T) {
	base := ident.Case("t", "web", "/v1/cases", "k")
	for _, other := range []string{
		ident.Case("u", "web", "/v1/cases", "k"), ident.Case("t", "app", "/v1/cases", "k"),
		ident.Case("t", "web", "/v1/other", "k"), ident.Case("t", "web", "/v1/cases", "l"),
		ident.Case("t", "web", "/v1/cases", "k", "c"), ident.Case("t", "web", "/v1/cases", "k1:c"),
	} {
		if other == base {
			t.Error("two different posts got one case id")
		}
	}
	if err := ident.Token(base); err != nil {
		t.Error(err)
	}
}

func TestFindingsAreNamedAlike(t *testing.T) {
	t.Parallel()
	one := ident.Finding("acme-in", "refund_without_intent", "8472", "rf_9")
	if one != ident.Finding("acme-in", "refund_without_intent", "8472", "rf_9") || one == ident.Finding("acme-in", "refund_without_intent", "847", "2rf_9") {
		t.Error("the same disagreement has two names, or two have one")
	}
	if err := ident.Tokens("finding", one, "case", ident.FindingCase(one), "desk", ident.Desk); err != nil {
		t.Error(err)
	}
}
