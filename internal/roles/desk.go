package roles

import (
	"slices"
	"time"
)

// Stream names.
const (
	StreamIntake      = "INTAKE"
	StreamCases       = "CASES"
	StreamTasks       = "TASKS"
	StreamResults     = "RESULTS"
	StreamEffects     = "EFFECTS"
	StreamControl     = "CONTROL"
	StreamTimers      = "TIMERS"
	StreamViews       = "VIEWS"
	StreamDeliveries  = "DELIVERIES"
	StreamDeadLetters = "DEADLETTERS"
	StreamAudit       = "AUDIT"
	StreamReports     = "REPORTS"
)

// Consumer names. The orchestrator drains results and staff decisions before
// new posts, so that started cases go first.
const (
	ConsumerPosts     = "orchestrator-posts"
	ConsumerDecisions = "orchestrator-decisions"
	ConsumerResults   = "orchestrator-results"
	ConsumerDue       = "orchestrator-due"
	ConsumerSweep     = "orchestrator-sweep"
	// ConsumerReplies finds the replies that are to be delivered to webhooks.
	ConsumerReplies = "gateway-replies"
)

// ConsumerViews is where the gateways take the views for their read model from.
const ConsumerViews = "gateway-views"

// Tools.
const (
	ToolVerifyOwner   = "orders.verify_owner"
	ToolListCaptures  = "payments.list_captures"
	ToolListRefunds   = "payments.list_refunds"
	ToolGetSettlement = "payments.get_settlement"
	ToolGetRefund     = "payments.get_refund"
	ToolPolicySearch  = "policy.search"
	ToolReadState     = "state.read"
	ToolReadOrder     = "payments.read_order"
	ToolCreateRefund  = "payments.create_refund"
)

const day = 24 * time.Hour

// ackWait is how long the input or task of a process that was killed waits until
// it comes again. Deadlines run from the broker's time of an input, so it is
// well below the shortest of them, or what the input causes would be late when
// it is sent. Handlers that take longer are kept alive by heartbeats.
const ackWait = 5 * time.Second

// Redelivery delays before a dead letter: five deliveries.
var redelivery = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute}

// viewRedelivery waits out a Redis that is away for long: the projector pauses
// meanwhile, so few deliveries are spent.
var viewRedelivery = slices.Concat(redelivery[:2], slices.Repeat(redelivery[2:3], 30))

// TaskConsumer names the consumer a recipient pulls its tasks from.
func TaskConsumer(s Service) string { return string(s) + "-tasks" }

// Desk is the manifest of the refund desk.
func Desk() Manifest {
	workers := []Service{PaymentInvestigator, PolicySpecialist, Composer, Verifier, RefundExecutor}
	everyone := append([]Service{Gateway, Orchestrator, Console}, workers...)
	watched := []string{ConsumerPosts, ConsumerResults} // what cases wait for
	for _, w := range workers {
		watched = append(watched, TaskConsumer(w))
	}
	m := Manifest{
		Streams: []Stream{
			{Name: StreamIntake, Subjects: []string{"intake.*.*.*"}, Class: Synced, MaxAge: 30 * day, Writers: []Service{Gateway, Console}},
			{Name: StreamCases, Subjects: []string{"case.*.*"}, Class: Synced, DenyDelete: true, DenyPurge: true, Writers: []Service{Orchestrator}},
			{Name: StreamTasks, Subjects: []string{"task.*.*.*"}, Class: Recomputable, MaxAge: 7 * day, Writers: []Service{Orchestrator}},
			{Name: StreamResults, Subjects: []string{"result.*.*.*"}, Class: Recomputable, MaxAge: 7 * day, Writers: workers},
			{Name: StreamEffects, Subjects: []string{"effect.*.*"}, Class: Synced, DenyDelete: true, DenyPurge: true, Writers: []Service{RefundExecutor}},
			{Name: StreamControl, Subjects: []string{"control.stop.*", "control.reconcile.*"}, Class: Synced, MaxMessagesPerSubject: 1, Writers: []Service{Console}},
			{Name: StreamTimers, Subjects: []string{"timer.*.*", "due.*.*"}, Class: Recomputable, MaxAge: 30 * day, MaxMessagesPerSubject: 1, Schedules: true, Writers: []Service{Orchestrator}},
			{Name: StreamViews, Subjects: []string{"view.*.*"}, Class: Recomputable, MaxMessagesPerSubject: 1, RepublishTo: "live.", AlwaysFile: true, Writers: []Service{Orchestrator}},
			{Name: StreamDeliveries, Subjects: []string{"delivery.*.*", "endpoint.*.*"}, Class: Recomputable, MaxAge: 30 * day, MaxMessagesPerSubject: 1, Writers: []Service{Gateway}},
			{Name: StreamDeadLetters, Subjects: []string{"dead.*.*.*"}, Class: Synced, DenyPurge: true, Writers: everyone},
			{Name: StreamReports, Subjects: []string{"report.*.*.*"}, Class: Recomputable, MaxAge: 30 * day, MaxMessagesPerSubject: 1, Writers: []Service{Orchestrator, RefundExecutor}},
			{Name: StreamAudit, Subjects: []string{"audit.*.*"}, Class: Synced, DenyDelete: true, DenyPurge: true, Writers: everyone},
		},
		Consumers: []Consumer{
			{Name: ConsumerPosts, Stream: StreamIntake, Filter: "intake.gateway.*.*", Service: Orchestrator, AckWait: ackWait, Backoff: redelivery, MaxAckPending: 2048},
			{Name: ConsumerDecisions, Stream: StreamIntake, Filter: "intake.console.*.*", Service: Orchestrator, AckWait: ackWait, Backoff: redelivery, MaxAckPending: 2048},
			{Name: ConsumerResults, Stream: StreamResults, Filter: "result.*.*.*", Service: Orchestrator, AckWait: ackWait, Backoff: redelivery, MaxAckPending: 4096},
			{Name: ConsumerDue, Stream: StreamTimers, Filter: "due.*.*", Service: Orchestrator, AckWait: ackWait, Backoff: redelivery, MaxAckPending: 2048},
			{Name: ConsumerSweep, Stream: StreamCases, Filter: "case.*.*", Service: Orchestrator, AckWait: 30 * time.Second, Backoff: redelivery, MaxAckPending: 8192, Resettable: true},
			{Name: ConsumerViews, Stream: StreamViews, Filter: "view.*.*", Service: Gateway, AckWait: ackWait, Backoff: viewRedelivery, MaxAckPending: 1024},
			{Name: ConsumerReplies, Stream: StreamViews, Filter: "view.*.*", Service: Gateway, AckWait: 30 * time.Second, Backoff: redelivery, MaxAckPending: 1024, Resettable: true},
		},
		Roles: []Role{
			{
				Service: Gateway, Owner: "channels",
				Publishes:   []string{"intake.gateway.*.*", "delivery.*.*", "endpoint.*.*"},
				DirectReads: []DirectRead{{StreamViews, "view.*.*"}},
				Live:        []string{"live.view.*.*"},
				LeaderReads: []string{StreamControl, StreamViews, StreamDeliveries},
				Watches:     watched,
				Secrets:     []string{"broker-gateway", "channel-keys", "redis", "webhook-channels", "webhook-payments"},
				Peers:       []string{"redis", "webhook-receivers"},
			},
			{
				Service: Orchestrator, Owner: "desk-core", CallPrefix: "t",
				Publishes:   []string{"case.*.*", "task.*.*.*", "timer.*.*", "view.*.*", "report.orchestrator.*.*"},
				LeaderReads: []string{StreamCases, StreamViews, StreamControl, StreamEffects},
				DirectReads: []DirectRead{{StreamReports, "report.orchestrator.*.*"}},
				Tools:       []string{ToolVerifyOwner},
				Fields:      []string{"triage", "tasks", "decision", "action", "reply", "custody", "conflicts", "deadlines"},
				Secrets:     []string{"broker-orchestrator", "payments-verify-owner", "approver-registry"},
				Peers:       []string{"payments"},
			},
			{
				Service: PaymentInvestigator, Owner: "payments-insight", CallPrefix: "p",
				Tools:   []string{ToolListCaptures, ToolListRefunds, ToolGetSettlement},
				Fields:  []string{"payment"},
				Secrets: []string{"broker-payment-investigator", "payments-read-investigator"},
				Peers:   []string{"payments"},
			},
			{
				Service: PolicySpecialist, Owner: "policy", CallPrefix: "q",
				Tools:   []string{ToolPolicySearch},
				Fields:  []string{"policy"},
				Secrets: []string{"broker-policy-specialist"},
			},
			{
				Service: Composer, Owner: "customer-voice", CallPrefix: "c",
				Fields:  []string{"draft"},
				Secrets: []string{"broker-composer"},
			},
			{
				Service: Verifier, Owner: "assurance", CallPrefix: "v",
				Tools:   []string{ToolReadState, ToolGetRefund, ToolListCaptures},
				Fields:  []string{"verification"},
				Secrets: []string{"broker-verifier", "payments-read-verifier"},
				Peers:   []string{"payments"},
			},
			{
				Service: RefundExecutor, Owner: "money-movement", CallPrefix: "x",
				Publishes:   []string{"effect.*.*", "report.refund-executor.*.*"},
				LeaderReads: []string{StreamEffects, StreamControl},
				DirectReads: []DirectRead{{StreamReports, "report.refund-executor.*.*"}},
				Tools:       []string{ToolReadOrder, ToolCreateRefund, ToolGetRefund, ToolListRefunds},
				Fields:      []string{"effect"},
				Secrets:     []string{"broker-refund-executor", "payments-refund-write", "approver-registry"},
				Peers:       []string{"payments"},
			},
			{
				Service: Console, Owner: "operations",
				Publishes:   []string{"intake.console.*.*", "control.stop.*", "control.reconcile.*"},
				DirectReads: []DirectRead{{StreamCases, "case.*.*"}, {StreamControl, "control.stop.*"}, {StreamControl, "control.reconcile.*"}, {StreamReports, "report.*.*.*"}},
				Secrets:     []string{"broker-console", "staff-keys", "redis"},
				Peers:       []string{"redis"},
			},
		},
	}
	for _, w := range workers {
		m.Consumers = append(m.Consumers, Consumer{
			Name: TaskConsumer(w), Stream: StreamTasks, Filter: "task." + string(w) + ".*.*", Service: w,
			AckWait: ackWait, Backoff: redelivery, MaxAckPending: 1024,
		})
	}
	for i := range m.Roles {
		r := &m.Roles[i]
		for _, w := range workers {
			if r.Service == w {
				r.Publishes = append(r.Publishes, "result."+string(w)+".*.*")
			}
		}
		r.Publishes = append(r.Publishes, "dead."+string(r.Service)+".*.*", "audit."+string(r.Service)+".*")
	}
	return m
}
