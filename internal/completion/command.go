package completion

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// Commands are the verbs for shells.
type Commands struct {
	Completion scriptCmd  `cmd:"" help:"Print a script that completes this command in a shell."`
	Complete   suggestCmd `cmd:"" name:"__complete" hidden:"" help:"Print what the words typed so far may become."`
}

//go:embed scripts
var scripts embed.FS

type scriptCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash: source <(amends completion bash); zsh: the same; fish: amends completion fish | source."`
}

// Run prints the script.
func (c scriptCmd) Run(k *kong.Context) error {
	text, err := scripts.ReadFile("scripts/" + c.Shell)
	if err != nil {
		return fmt.Errorf("completion: %w", err)
	}
	name := k.Model.Name
	_, err = io.WriteString(k.Stdout, strings.NewReplacer("@name@", name, "@func@", "_"+strings.ReplaceAll(name, "-", "_")).Replace(string(text)))
	return err
}

type suggestCmd struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints a candidate a line.
func (c suggestCmd) Run(k *kong.Context) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, s := range Suggest(k.Model, words) {
		if _, err := fmt.Fprintln(k.Stdout, s); err != nil {
			return err
		}
	}
	return nil
}
