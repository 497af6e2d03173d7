package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// printHelp is the parser's own help, which would show flags of which one is
// wanted (xor) as if all of them were.
func printHelp(o kong.HelpOptions, ctx *kong.Context) error {
	out := ctx.Stdout
	var text bytes.Buffer
	ctx.Stdout = &text
	err := kong.DefaultHelpPrinter(o, ctx)
	ctx.Stdout = out
	if err != nil {
		return fmt.Errorf("print help: %w", err)
	}
	var either []string
	for _, leaf := range ctx.Model.Leaves(true) {
		groups := map[string][]string{}
		for _, f := range leaf.Flags {
			if f.Required && len(f.Xor) == 1 {
				groups[f.Xor[0]] = append(groups[f.Xor[0]], f.Summary())
			}
		}
		for _, group := range groups {
			either = append(either, strings.Join(group, " "), "("+strings.Join(group, " | ")+")")
		}
	}
	if _, err := strings.NewReplacer(either...).WriteString(out, text.String()); err != nil {
		return fmt.Errorf("print help: %w", err)
	}
	return nil
}
