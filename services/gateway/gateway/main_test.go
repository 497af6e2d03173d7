package gateway

import (
	"flag"
	"os"
	"runtime"
	"testing"
)

// Most of these tests wait, for a view that is not there or a limit to pass, so
// more of them run side by side than there are processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 4)) // the embedded broker's file writes block threads
	os.Exit(m.Run())
}
