package bus

import "github.com/amends-dev/amends/internal/roles"

// DefaultAPIPrefix is where the services' account imports the parts of the
// JetStream API that the manifest grants. It is not $JS.API: that one answers
// for the services' own account, which holds no streams.
const DefaultAPIPrefix = "JS.desk.API"

// InboxPrefix is the prefix of the reply subjects of a service. It is one
// token, so "<prefix>.>" grants exactly this service's replies.
func InboxPrefix(s roles.Service) string { return "_INBOX_" + string(s) }
