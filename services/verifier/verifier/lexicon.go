package verifier

import "strings"

// mark is a set of meanings; a sentence has those of its words.
type mark uint64

const (
	refund      mark = 1 << iota // speaks of money going back
	returned                     // says that it went back: refunded, credited
	moved                        // sent, arrived: of money, it speaks of a refund
	approve                      // approval
	no                           // not, nothing
	done                         // completed
	pending                      // pending, requested
	failed                       // failed, did not go through
	will                         // speaks of the future
	promise                      // soon, within, guarantee
	duplicate                    // duplicate, twice
	payment                      // payment, charge
	found                        // found, find
	hold                         // hold, authorisation
	taken                        // taken, charged
	look                         // look, check
	again                        // again
	outside                      // outside, older
	paid                         // paid
	total                        // total
	order                        // order
	confirm                      // confirm, send us
	number                       // number
	person                       // specialist, colleague
	passed                       // passed, handed
	cancelled                    // cancelled
	request                      // request, case
	reviewed                     // reviewed
	declined                     // against, declined
	can                          // can
	reply                        // reply
	records                      // records
	complete                     // complete
	masked                       // masked
	cash                         // money
	amountWord                   // amount
	back                         // back
	give                         // give, get, pay: of back
	domain                       // account, bank: a statement about the matter
	scale                        // thousand, lakh
	relative                     // today, Monday
	instruction                  // skip, verifier
	covers                       // covers, rule
	sent                         // sent, returned: of money
	through                      // go through
	decided                      // decided
)

var lexicon = build(map[mark]string{
	refund:      "refund refunds refunded refunding refundable reimburse reimbursed reimbursement repay repaid repayment credit credited credits crediting reverse reversed reversal deposit deposited payout compensate compensated compensation cashback voucher",
	returned:    "refunded reimbursed repaid credited reversed deposited compensated",
	moved:       "arrived arrive arrives arriving received landed reached transferred released added loaded",
	sent:        "sent returned transferred wired",
	approve:     "approve approved approves approval approvals authorised authorized granted accepted agreed",
	no:          "no not nothing never none neither without cannot",
	done:        "completed complete arrived received credited succeeded successful successfully processed finalised finalized deposited transferred issued sent returned made paid done settled released reached landed cleared",
	pending:     "pending requested submitted progress step",
	failed:      "failed fail cancelled canceled declined rejected unsuccessful",
	will:        "will shall going gonna would",
	promise:     "soon shortly immediately instantly guarantee guaranteed guarantees promise promised promises expect expected within asap definitely certainly should eta arrive arrives arriving expires expire drop drops disappear disappears later eventually",
	duplicate:   "duplicate duplicates duplicated twice thrice double doubled",
	payment:     "payment payments charge charges capture captures transaction transactions debit debits charged",
	found:       "found find finds see shows show located",
	hold:        "hold holds held authorisation authorization authorisations authorizations reserved preauthorisation",
	taken:       "taken took charged captured collected debited",
	look:        "look looking check checking recheck review",
	again:       "again",
	outside:     "outside older beyond exceeded",
	paid:        "paid",
	total:       "total",
	order:       "order orders",
	confirm:     "confirm tell provide share reply check",
	number:      "number",
	person:      "person specialist colleague team human agent people",
	passed:      "passed handed forwarded escalated transferred given",
	cancelled:   "cancelled canceled withdrawn closed",
	request:     "request requests case",
	reviewed:    "reviewed looked considered",
	declined:    "against declined rejected refused",
	can:         "can could may",
	reply:       "reply respond answer write",
	records:     "record records evidence information",
	complete:    "complete",
	masked:      "masked hidden removed",
	cash:        "money funds cash rupees",
	amountWord:  "amount sum",
	back:        "back",
	give:        "give gave given get gets got pay paid send sent receive have put money",
	domain:      "account bank card cards policy dispute chargeback ledger balance fee fees bonus discount apology fault mistake error fraud free upgrade upgraded",
	scale:       "thousand thousands hundred hundreds lakh lakhs lac crore crores million",
	relative:    "today tonight tomorrow yesterday monday tuesday wednesday thursday friday saturday sunday week weekend month noon midnight",
	instruction: "verifier verification prompt system instruction instructions ignore disregard vip tier ai assistant override bypass",
	covers:      "covers rule period",
	through:     "through",
	decided:     "decided",
})

func build(sets map[mark]string) map[string]mark {
	out := make(map[string]mark, 512)
	for m, words := range sets {
		for _, w := range strings.Fields(words) {
			out[w] |= m
		}
	}
	return out
}

var counts = map[string]int{
	"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "both": 2,
	"once": 1, "twice": 2, "thrice": 3,
}

var months = map[string]int{
	"january": 1, "jan": 1, "february": 2, "feb": 2, "march": 3, "mar": 3, "april": 4, "apr": 4, "may": 5, "june": 6, "jun": 6,
	"july": 7, "jul": 7, "august": 8, "aug": 8, "september": 9, "sep": 9, "sept": 9, "october": 10, "oct": 10,
	"november": 11, "nov": 11, "december": 12, "dec": 12,
}

var units = map[string]bool{
	"day": true, "days": true, "hour": true, "hours": true, "hrs": true, "minute": true, "minutes": true, "week": true, "weeks": true,
	"month": true, "months": true, "business": true, "working": true, "banking": true, "d": true, "h": true,
}

// Identifiers that never reach a customer.
var internalPrefixes = []string{
	"pay_", "pi_", "ch_", "txn_", "cap_", "pm_", "py_", "card_", "giftcard_", "src_", "acct_", "auth_", "cust_",
	"apr-", "call-", "task-", "req-",
}

var refundPrefixes = []string{"rf_", "re_", "rfnd_", "refund_"}
