package casework

import (
	"strconv"

	"google.golang.org/protobuf/proto"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// MaxLinked is how many cases one request may become.
const MaxLinked = 16

// rowContinued is the row of a closed case whose customer wrote again.
const rowContinued = "message.after_close"

// LinkedID names the nth case of a request, from 1: req-8472, req-8472-2.
func LinkedID(requestID string, n int) string {
	if n <= 1 {
		return requestID
	}
	return requestID + "-" + strconv.Itoa(n)
}

// Continues reports whether an input belongs into a linked case: what a customer
// writes to a case that is closed. The shell finds that case first and names
// it in the input (OpensCaseId); for the linked case itself it is its own.
func Continues(rec *amendsv1.CaseRecord, in Input) bool {
	_, message := in.Payload.(*amendsv1.CustomerMessage)
	return message && rec != nil && Closed(rec) && in.GetEnvelope().GetCustomerId() == rec.GetCustomerId() && (in.GetOpensCaseId() == "" || in.GetOpensCaseId() == rec.GetCaseId())
}

// NeedsTriage reports whether the shell must triage the input's message before
// it decides on the record: not when the message goes on to a linked case.
func NeedsTriage(rec *amendsv1.CaseRecord, p proto.Message) (*amendsv1.UntrustedText, bool) {
	switch m := p.(type) {
	case *amendsv1.CaseOpened:
		return m.GetMessage(), true
	case *amendsv1.CustomerMessage:
		return m.GetMessage(), rec == nil || !Closed(rec)
	}
	return nil, false
}
