package casework

import (
	"google.golang.org/protobuf/proto"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// maxViewMessages bounds what a view says of messages: all that a case takes
// from outside (Limits.Inputs less InputReserve) has room.
const maxViewMessages = 256

// bodyOf is what another message under the same key is told by; empty for
// anything but a customer's later message.
func bodyOf(p proto.Message) string {
	m, _ := p.(*amendsv1.CustomerMessage)
	return m.GetBodySha256()
}

// Met reports whether a record has met a message with this body first. Of two
// bodies under one id a case takes one, and every case of a request that met
// the message must name the same.
func Met(rec *amendsv1.CaseRecord, sender, messageID string, p proto.Message) bool {
	for _, h := range rec.GetHandled() {
		if h.GetMessageId() == messageID && h.GetSender() == sender {
			return h.GetBodySha256() == bodyOf(p)
		}
	}
	return false
}

// viewMessages says which messages a record met, and which body of each,
// whatever became of it: recorded, gone on to a linked case, or refused.
func viewMessages(rec *amendsv1.CaseRecord) []*amendsv1.ViewMessage {
	var out []*amendsv1.ViewMessage
	for _, h := range rec.GetHandled() {
		if h.GetBodySha256() != "" {
			out = append(out, &amendsv1.ViewMessage{MessageId: h.GetMessageId(), BodySha256: h.GetBodySha256()})
		}
	}
	return out[max(len(out)-maxViewMessages, 0):]
}

// lastMessage is the version after the last message.
func lastMessage(rec *amendsv1.CaseRecord) (version uint64) {
	for _, h := range rec.GetHandled() {
		if h.GetBodySha256() != "" {
			version = h.GetVersion()
		}
	}
	return version
}
