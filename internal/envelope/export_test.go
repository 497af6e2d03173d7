package envelope

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// OpenAfterUpgrade opens like a receiver whose types are all one minor ahead.
func OpenAfterUpgrade(data []byte, subj subject.Parts, at time.Time) (*amendsv1.Envelope, proto.Message, *Rejection) {
	next := registry(Types())
	for i := range next {
		next[i].Minor++
	}
	return next.open(data, subj, at)
}
