package completion

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Files stands among the candidates for the names of files.
const Files = ":files"

// Suggest gives what the last of the words may become. The words are those
// behind the command's name; the last may be empty.
func Suggest(app *kong.Application, words []string) []string {
	if len(words) == 0 {
		return nil
	}
	l := line{node: app.Node}
	last := len(words) - 1
	for _, w := range words[:last] {
		if !l.take(w) {
			return nil
		}
	}
	return l.candidates(words[last])
}

// line is a command line up to a word.
type line struct {
	node *kong.Node
	// given counts the arguments behind the verb.
	given int
	// awaits is the flag whose value comes next.
	awaits *kong.Flag
	// ended says that nothing behind is a flag.
	ended bool
}

// take reads one word; false when there is no such verb.
func (l *line) take(w string) bool {
	switch {
	case l.awaits != nil:
		if w != "=" { // bash makes --flag=value three words
			l.awaits = nil
		}
	case l.ended:
		l.given++
	case w == "--":
		l.ended = true
	case len(w) > 1 && w[0] == '-':
		if f := l.flag(w); f != nil && !f.IsBool() && !f.IsCounter() {
			l.awaits = f
		}
	case l.node.Leaf():
		l.given++
	default:
		child := l.child(w)
		if child == nil {
			return false
		}
		l.node = child
	}
	return true
}

func (l *line) child(name string) *kong.Node {
	for _, c := range l.node.Children {
		if c.Name == name || slices.Contains(c.Aliases, name) {
			return c
		}
	}
	return nil
}

// flag gives the flag a word names; none when its value is written onto it.
func (l *line) flag(w string) *kong.Flag {
	for _, node := range []*kong.Node{l.node, byDefault(l.node)} {
		for _, group := range node.AllFlags(false) {
			for _, f := range group {
				if w == "--"+f.Name || f.Short != 0 && w == "-"+string(f.Short) {
					l.node = node // a flag of the verb that is meant without one
					return f
				}
			}
		}
	}
	return nil
}

// byDefault gives the verb that is meant where none is given, or the node.
func byDefault(n *kong.Node) *kong.Node {
	if d := n.DefaultCmd; d != nil && d.Tag.Default == "withargs" {
		return d
	}
	return n
}

func (l *line) candidates(w string) []string {
	if l.awaits != nil {
		return values(l.awaits.Value, strings.TrimPrefix(w, "="), "")
	}
	if name, value, ok := strings.Cut(w, "="); ok && !l.ended {
		if f := l.flag(name); f != nil {
			return values(f.Value, value, name+"=")
		}
	}
	if strings.HasPrefix(w, "-") && !l.ended {
		return l.flags(w)
	}
	var out []string
	for _, c := range l.node.Children {
		if !c.Hidden && strings.HasPrefix(c.Name, w) {
			out = append(out, c.Name)
		}
	}
	if args := l.node.Positional; l.given < len(args) {
		out = append(out, values(args[l.given], w, "")...)
	}
	return out
}

func (l *line) flags(w string) (out []string) {
	for _, group := range byDefault(l.node).AllFlags(true) {
		for _, f := range group {
			if name := "--" + f.Name; strings.HasPrefix(name, w) {
				out = append(out, name)
			}
		}
	}
	return out
}

// values gives the values that begin with w, behind what the word already
// holds.
func values(v *kong.Value, w, behind string) (out []string) {
	switch {
	case v.Enum != "":
		for _, e := range v.EnumSlice() {
			if e != "" && strings.HasPrefix(e, w) {
				out = append(out, behind+e)
			}
		}
	case slices.Contains([]string{"path", "existingfile", "existingdir", "filecontent", "namedfilecontent"}, v.Tag.Type):
		out = append(out, Files)
	}
	return out
}
