// Command orchestrator owns the case state machine: it turns posts, results,
// decisions and timers into case versions, and sends what they want.
package main

import (
	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/orchestrator/orchestrator"
)

func main() {
	boot.Main(roles.Orchestrator, orchestrator.DefaultConfig(), orchestrator.Run)
}
