package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// pure packages decide; they get what they need to know as arguments.
var pure = []string{
	"internal/approval", "internal/casework", "internal/custody", "internal/entitlement", "internal/envelope", "internal/evidence",
	"internal/ident", "internal/money", "internal/roles", "internal/subject",
}

// refundClient is the code that can ask the provider for a refund.
const refundClient = "services/refund-executor/internal/refunds"

// importRule forbids imports by where they come from.
type importRule struct {
	name string
	// from says whether the rule binds a package.
	from func(p pkg) bool
	// to says whether it forbids this import.
	to func(p pkg, path string) bool
	// withTests binds the package's tests too.
	withTests bool
	because   string
}

func serviceOf(path string) string {
	rest, ok := strings.CutPrefix(path, "services/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

func everyPackage(pkg) bool { return true }

var importRules = []importRule{
	{
		name: "no service imports another",
		from: func(p pkg) bool { return serviceOf(p.Path) != "" },
		to: func(p pkg, path string) bool {
			return serviceOf(path) != "" && serviceOf(path) != serviceOf(p.Path)
		},
		withTests: true,
		because:   "services are deployed alone and talk over the bus; what two of them need is a package of internal",
	},
	{
		name:      "internal imports no service and no command",
		from:      func(p pkg) bool { return p.in("internal") && !p.in("internal/allinone", "internal/archtest") },
		to:        func(_ pkg, path string) bool { return within(path, "services", "cmd") },
		withTests: true,
		because:   "a shared package that knows its users ties them together; only the embedded desk puts services side by side",
	},
	{
		name: "the contracts import nothing of ours",
		from: func(p pkg) bool { return p.in("proto") },
		to:   func(_ pkg, path string) bool { return within(path, "internal", "services", "cmd") },

		because: "everybody imports the contracts",
	},
	{
		name: "NATS only where the broker is the subject",
		from: func(p pkg) bool {
			return !p.in("internal/bus", "internal/casestore", "internal/allinone", "internal/provision", "internal/broker", "e2e")
		},
		to: func(_ pkg, path string) bool {
			return within(path, "github.com/nats-io/nats.go", "github.com/nats-io/nats-server", "github.com/synadia-io/orbit.go")
		},
		withTests: true,
		because:   "acknowledging, retrying and dead-lettering are decided in one place: use internal/bus",
	},
	{
		name: "deciding packages do no I/O",
		from: func(p pkg) bool { return p.in(pure...) },
		to: func(_ pkg, path string) bool {
			return within(path, "net", "os", "io/fs", "io/ioutil", "syscall", "log", "database", "embed",
				"github.com/nats-io", "github.com/redis", "github.com/go-redis", "github.com/alicebob", "google.golang.org/grpc")
		},
		because: "the same record and input must always give the same answer; read outside and pass in what was read",
	},
	{
		name: "deciding packages have no random source",
		from: func(p pkg) bool { return p.in(pure...) },
		to: func(_ pkg, path string) bool {
			return within(path, "math/rand", "crypto/rand", "github.com/google/uuid", "github.com/nats-io/nuid")
		},
		because: "ids derive from the record (ident.Derive), so that a repeat is recognised; pass entropy in where it is meant",
	},
	{
		name: "deciding packages rest on deciding packages",
		from: func(p pkg) bool { return p.in(pure...) },
		to: func(_ pkg, path string) bool {
			return within(path, "internal", "services", "cmd") && !within(path, pure...)
		},
		because: "I/O hidden one import away is still I/O; a package that decides too belongs in the list of pure packages",
	},
	{
		name:    "testing stays in tests",
		from:    func(p pkg) bool { return !p.testPackage() },
		to:      func(_ pkg, path string) bool { return path == "testing" || strings.HasPrefix(path, "testing/") },
		because: "it registers flags and grows every binary; helpers of tests live in a package whose name ends in test",
	},
	{
		name:    "test packages stay in tests",
		from:    everyPackage,
		to:      func(p pkg, path string) bool { return !p.testPackage() && testHelper(path) },
		because: "what is made for tests is not made for production",
	},
}

// testHelper reports whether path is one of our packages for tests.
func testHelper(path string) bool {
	return within(path, "internal", "services") && strings.HasSuffix(path, "test") && path != "internal/archtest"
}

func (r importRule) findings(pkgs []pkg) []string {
	var out []string
	for _, p := range pkgs {
		if !r.from(p) {
			continue
		}
		for _, path := range p.imports(r.withTests) {
			if r.to(p, path) {
				out = append(out, fmt.Sprintf("%s imports %s: %s", p.Path, path, r.because))
			}
		}
	}
	return out
}

func TestImports(t *testing.T) {
	t.Parallel()
	pkgs := packages(t)
	for _, r := range importRules {
		t.Run(r.name, func(t *testing.T) { report(t, r.findings(pkgs)) })
	}
}

// linkRule says which packages may have another anywhere below them.
type linkRule struct {
	name    string
	linked  func(path string) bool
	allowed func(p pkg) bool
	because string
}

var linkRules = []linkRule{
	{
		name:   "only the executor and the embedded desk link the refund client",
		linked: func(path string) bool { return path == refundClient },
		allowed: func(p pkg) bool {
			return p.in("services/refund-executor", "internal/allinone", "internal/caserun", "cmd/amends-dev", "e2e")
		},
		because: "one service moves money; what cannot call the provider cannot be talked into it",
	},
	{
		name:    "the operator's command line links no service",
		linked:  func(path string) bool { return within(path, "services") },
		allowed: func(p pkg) bool { return !p.in("cmd/amends") },
		because: "it is a client with its operator's rights and nothing else; use the APIs",
	},
	{
		name:    "no deployable links the embedded broker",
		linked:  func(path string) bool { return within(path, "github.com/nats-io/nats-server") },
		allowed: func(p pkg) bool { return p.Name != "main" || p.in("cmd/amends-dev") },
		because: "a service is a client of the broker; a server inside it would listen with nobody watching",
	},
}

func (r linkRule) findings(pkgs []pkg) []string {
	var out []string
	for _, p := range pkgs {
		if i := slices.IndexFunc(p.Deps, r.linked); i >= 0 && !r.allowed(p) {
			out = append(out, fmt.Sprintf("%s links %s: %s", p.Path, p.Deps[i], r.because))
		}
	}
	return out
}

func TestLinks(t *testing.T) {
	t.Parallel()
	pkgs := packages(t)
	for _, r := range linkRules {
		t.Run(r.name, func(t *testing.T) { report(t, r.findings(pkgs)) })
	}
}

// The executor is the one that moves money, so it must link the client: a rule
// about a path that has moved would hold for ever.
func TestTheRefundClientIsWhereTheRulesLook(t *testing.T) {
	t.Parallel()
	pkgs := packages(t)
	for _, path := range []string{"services/refund-executor", "cmd/amends-dev"} {
		i := slices.IndexFunc(pkgs, func(p pkg) bool { return p.Path == path })
		if i < 0 || !slices.Contains(pkgs[i].Deps, refundClient) {
			t.Errorf("%s does not link %s", path, refundClient)
		}
	}
}
