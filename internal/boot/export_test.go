package boot

import (
	"io"
	"os"

	"github.com/amends-dev/amends/internal/roles"
)

// Start is Main without the process around it.
func Start[C any, P interface {
	*C
	Configuration
}](args, environ []string, stdout, stderr io.Writer, signals <-chan os.Signal, name roles.Service, cfg C, run Run[C]) int {
	return start[C, P](process{args: args, environ: environ, stdout: stdout, stderr: stderr, signals: signals}, name, cfg, run)
}
