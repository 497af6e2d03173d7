package casework_test

import (
	"flag"
	"os"
	"testing"

	"github.com/amends-dev/amends/internal/casework"
)

var update = flag.Bool("update", false, "write the generated page")

// The page in docs is the table's own.
func TestStateMachineDocument(t *testing.T) {
	const page = "../../docs/state-machine.md"
	if *update {
		if err := os.WriteFile(page, []byte(casework.Document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != casework.Document() {
		t.Error("docs/state-machine.md is not what the table says; run make generate")
	}
}
