package casefile

import "strings"

// group is a set of words and phrases that say the same in a reply.
type group struct {
	// polar: whether the sentence affirms or denies it matters. A fact's
	// "found" is not met by "I did not find".
	polar bool
	// members, parted by commas; a phrase may hold its own negation.
	members string
}

// groups are the synonyms of facts. A word stands in every group it can mean.
var groups = map[string]group{
	"refund":       {true, "refund, money back, back, reimburse, reimbursement, send back, give back, pay back, return, credit, reverse, reversal, repay"},
	"requested":    {true, "request, initiate, start, submit, create, issue, make, raise, under way, ask for"},
	"pending":      {true, "pending, on its way, on the way, processing, in progress, being processed, at the bank, not arrived, not yet arrived, not completed, awaiting, outstanding"},
	"completed":    {true, "complete, done, finish, succeed, success, successful, gone through, went through"},
	"arrived":      {true, "arrive, reach, receive, land, come through"},
	"duplicate":    {true, "duplicate, twice, double, second payment, second charge, extra payment, extra, more than once, once more than, repeated, charged again"},
	"no duplicate": {false, "no duplicate, not a duplicate, not duplicate, no second payment, no second charge, not charged twice, only one, one payment, single payment, make up"},
	"real":         {false, "real, genuine, valid, correct, make up"},
	"hold":         {true, "hold, authorisation, authorization, authorise, authorize, reserve, reservation, block, not taken, not captured, not charged, not settled, never taken, never captured"},
	"taken":        {true, "take, charge, debit, deduct, capture, collect, pay"},
	"settled":      {true, "settle, complete, final"},
	"found":        {true, "find, see, show, there is, there are, exist, locate, list, on record, identify"},
	"not found":    {false, "not found, not find, cannot find, can not find, could not find, cannot see, no such, unknown, there is no, there are no"},
	"payment":      {false, "payment, charge, capture, debit, transaction, entry, deduction"},
	"amount":       {false, "amount, sum, payment, charge, entry, money, figure"},
	"money":        {false, "money, amount, fund, payment, sum"},
	"second":       {false, "second, 2nd, other, later, latter, another"},
	"order":        {false, "order, purchase"},
	"account":      {false, "account, profile, your orders"},
	"number":       {false, "number, reference, id"},
	"confirm":      {false, "confirm, check, verify, provide, tell, send us, share, let us know, clarify, which order, give us"},
	"ask":          {false, "ask, please, confirm, could you, can you, let us know, which, need, require"},
	"person":       {false, "person, people, human, specialist, colleague, team, agent, staff, someone, somebody, expert, advisor, adviser, representative, reviewer"},
	"passed":       {false, "pass, hand, forward, escalate, transfer, give, refer, assign, go to, with a specialist, with a person"},
	"review":       {false, "review, look, decide, check, examine, assess, take over, consider, continue, handle, follow up"},
	"decide":       {false, "decide, decision, review, continue, pass to"},
	"outside":      {false, "outside, older, beyond, past, exceed, more than, too old, not within, not covered, longer than, late"},
	"window":       {false, "window, period, limit, day, rule, policy"},
	"cancelled":    {true, "cancel, withdraw, stop, call off, close"},
	"owed":         {true, "owe, due, remain, payable"},
	"total":        {false, "total, sum, full amount, price"},
	"together":     {false, "make up, together, add up, equal, cover"},
	"gift card":    {false, "gift card, giftcard, voucher"},
	"again":        {false, "again, recheck, re check, follow up, once more, look at"},
	"later":        {false, "later, again, then"},
	"dispute":      {false, "dispute, chargeback"},
	"declined":     {true, "decline, deny, reject, refuse, decide against, not approved"},
	"approve":      {true, "approve, approval, accept, agree, grant"},
	"earlier":      {false, "earlier, previous, before, prior"},
	"record":       {false, "record, ledger, system, book"},
	"incomplete":   {false, "incomplete, not complete, missing, unclear, contradict, inconsistent, disagree, mismatch, not agree"},
	"evidence":     {false, "evidence, record, information, detail"},
	"masked":       {false, "mask, hide, remove, redact, strip"},
	"expire":       {true, "expire, lapse, drop off, run out"},
	"fail":         {true, "fail, failure, unsuccessful, not go through, not gone through, did not go"},
	"twice":        {true, "twice, two times, 2 times, double, duplicate"},
	"card data":    {false, "card data, card number, card detail, card"},
	"bank":         {false, "bank, card issuer, issuer"},
}

// stopWords carry no fact. Those behind the line are the words in which a case
// file speaks about the reply instead of quoting it.
var stopWords = fieldSet(`a an the is are was were be been being am has have had having do does did it its this that these those of to for on in at by with from
	your you yours we our ours us i my me and or as there their they them he she his her will would shall should can could may might must into under over up
	already still just now only also yet currently please so then about per each any some more most than very if when while where who whom which what how
	both all every same such own here once anything something make makes made making
	customer customers reply replies says say saying said mentions mention names name states state tells explains explain explained explanation informs inform status
	fact clearly`)

// negators deny the clause they stand in.
var negators = fieldSet(`not no nothing never none nobody neither nor without cannot cant wont isnt arent wasnt werent dont doesnt didnt hasnt havent hadnt couldnt wouldnt shouldnt unable`)

// linkers begin a new clause; "and" does when one of the starters follows it.
var (
	linkers  = fieldSet(`but so because although though however whereas while`)
	starters = fieldSet(`is was are were has have had will would can cannot could do does did no not nothing never it this that the there we i you a an your our please`)
)

var irregular = map[string]string{
	"found": "find", "sent": "send", "taken": "take", "took": "take", "made": "make", "paid": "pay", "held": "hold", "gave": "give", "given": "give",
	"left": "leave", "got": "get", "went": "go", "gone": "go", "shown": "show", "withdrawn": "withdraw", "withdrew": "withdraw", "told": "tell",
	"saw": "see", "seen": "see", "kept": "keep", "came": "come", "hidden": "hide", "people": "people", "does": "do",
	"cancellation": "cancel", "completion": "complete", "duplication": "duplicate",
}

// stem gives the common form of a word's inflections. It need not be a word.
func stem(w string) string {
	if base, ok := irregular[w]; ok {
		w = base
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4, strings.HasSuffix(w, "ied") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "ing") && len(w) > 5:
		w = w[:len(w)-3]
	case strings.HasSuffix(w, "ed") && len(w) > 4:
		w = w[:len(w)-2]
	case hasAny(w, "ses", "xes", "zes", "ches", "shes") && len(w) > 4:
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "s") && len(w) > 3 && !hasAny(w, "ss", "us", "is"):
		w = w[:len(w)-1]
	}
	w = strings.TrimSuffix(w, "e")
	if n := len(w); n > 2 && w[n-1] == w[n-2] {
		w = w[:n-1]
	}
	return w
}

func hasAny(w string, suffixes ...string) bool {
	for _, s := range suffixes {
		if strings.HasSuffix(w, s) {
			return true
		}
	}
	return false
}

// phrase is one member of a group: its stems in order.
type phrase struct {
	group string
	polar bool
	words []string
	// denies: it holds a negation of its own.
	denies bool
}

// lexicon holds the members of all groups by their first word.
var lexicon = buildLexicon()

func buildLexicon() map[string][]phrase {
	out := map[string][]phrase{}
	for name, g := range groups {
		for _, member := range strings.Split(g.members, ",") {
			p := phrase{group: name, polar: g.polar}
			for _, w := range strings.Fields(member) {
				p.denies = p.denies || negators[w]
				p.words = append(p.words, stemOf(w))
			}
			out[p.words[0]] = append(out[p.words[0]], p)
		}
	}
	return out
}

// stemOf keeps the small words as they are.
func stemOf(w string) string {
	if negators[w] || stopWords[w] {
		return w
	}
	return stem(w)
}

var numerals = map[string]string{
	"one": "1", "single": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10",
}
