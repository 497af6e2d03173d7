package tools

import (
	"fmt"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
)

// SchemaVersion names these tool schemas; a case is pinned to one.
const SchemaVersion = "tools/1"

// spec is the schema of one tool.
type spec struct {
	// source is the system of record that answers.
	source string
	// order says that the call is about the order in the contract's scope.
	order bool
	// params are its arguments, in order; all are required.
	params []param
}

type param struct {
	name string
	// token says that the value must be a valid identifier.
	token bool
}

const maxArgument = 128

var specs = map[string]spec{
	roles.ToolVerifyOwner:   {source: "payments", params: []param{{"order_ref", true}}},
	roles.ToolListCaptures:  {source: "payments", order: true},
	roles.ToolListRefunds:   {source: "payments", order: true},
	roles.ToolGetSettlement: {source: "payments", order: true},
	roles.ToolReadOrder:     {source: "payments", order: true},
	roles.ToolCreateRefund:  {source: "payments", order: true, params: []param{{"idempotency_key", false}}},
	roles.ToolGetRefund:     {source: "payments", params: []param{{"refund_id", true}}},
	roles.ToolPolicySearch:  {source: "policy", params: []param{{"topic", true}, {"as_of", false}, {"corpus", false}}},
	roles.ToolReadState:     {source: "case-record"},
}

// Arg is one argument of a call.
type Arg struct{ Name, Value string }

// check compares arguments with the schema.
func (s spec) check(args []Arg) error {
	if len(args) != len(s.params) {
		return fmt.Errorf("%d arguments, want %d", len(args), len(s.params))
	}
	for i, p := range s.params {
		switch a := args[i]; {
		case a.Name != p.name:
			return fmt.Errorf("argument %d is %q, want %q", i+1, a.Name, p.name)
		case p.token && ident.Token(a.Value) != nil:
			return fmt.Errorf("argument %s: %w", p.name, ident.ErrToken)
		case a.Value == "" || len(a.Value) > maxArgument:
			return fmt.Errorf("argument %s: length %d, want 1 to %d", p.name, len(a.Value), maxArgument)
		}
	}
	return nil
}
