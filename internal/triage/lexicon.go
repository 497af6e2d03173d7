package triage

// class is a set of meanings a word may carry.
type class uint32

const (
	repeat  class = 1 << iota // twice, duplicate
	several                   // two, both: a number of things above one
	times                     // times, x
	charge                    // charged, payment
	charges                   // payments: things one can count
	refund                    // refund, reversal
	sum                       // money, amount
	give                      // give, take: followed by back
	query                     // where, when, status
	absent                    // not, never
	arrive                    // arrived, received, showing
	waiting                   // waiting, pending
	said                      // said, promised
	done                      // issued, processed
	want                      // want, need
	contact                   // called, asked
	cancel                    // cancel, withdraw
	request                   // what the desk was asked: request, case
	thing                     // what a cancel elsewhere is about: order, transfer
	mine                      // my
	fault                     // a want other than a duplicate: fee, overcharged
	broken                    // broken, damaged
	know                      // recognise, authorise
	acted                     // make, order
	fraud                     // fraud, hacked
	unknown                   // unknown, random
	card                      // card, account
	stolen                    // stolen, lost
	be                        // is, was
	use                       // used, took
)

// lexicon holds English, and the few words of Hindi in both scripts that
// messages about double charges are full of. Other tongues are in tongues.go.
var lexicon = build(map[class]string{
	repeat:  "twice thrice double doubled doubly duplicate duplicated duplicates duplicating duplication dup dupe दोबारा डबल dobara",
	several: "two three four five multiple both identical दो तीन",
	times:   "times time x baar bar बार",
	charge:  "charge charged charging charges bill billed billing billings debit debited debits debiting deduct deducted deduction deductions payment payments paid pay transaction transactions taken took take hit hits withdrawn withdrew capture captured captures cut kat kata payed withdrawal withdrawals purchases कट कटे कटा कटौती भुगतान purchase",
	charges: "charges payments transactions debits deductions captures withdrawals billings entries bills purchases",
	refund:  "refund refunds refunded refunding reverse reversed reversal reversing reimburse reimbursed reimbursement रिफंड रिफ़ंड",
	sum:     "money cash amount funds rupees paisa paise पैसा पैसे",
	give:    "give gave given giving take return send get got put credit credited want need have",
	query:   "where when wheres whens status track tracking progress update happened kab kahan कब कहां कहाँ",
	absent:  "not never no none hasnt havent hadnt didnt doesnt dont isnt wasnt arent wont cant cannot couldnt nahi nahin नहीं unable",
	arrive:  "arrive arrived arriving receive received receiving show showing shown shows showed appear appeared appearing see seen reach reached reflect reflected reflecting come came coming find found credited processed complete completed aaya aayi mila आया मिला gotten got get through visible posted here back happened going gone applied there have",
	waiting: "waiting wait waited awaiting pending delayed delay overdue yet still missing",
	said:    "said says told promised promise confirmed agreed assured bola kaha कहा",
	done:    "issued approved processed initiated sent made completed already accepted granted",
	want:    "want wants need needs please pls plz like demand can how could deserve require requesting",
	contact: "contact contacted call called calling email emailed mail mailed write wrote written ask asked tell messaged tried try trying complain complained reported visited spoke chatted ordered checked reminded declined failed rejected",
	cancel:  "cancel cancelled canceled cancelling canceling cancellation withdraw revoke undo stop",
	request: "request requests case claim ticket complaint refund enquiry inquiry",
	thing:   "order orders transfer transfers transaction transactions payment payments purchase subscription charge charges item delivery booking card debit one",
	mine:    "my our mera mere मेरा",
	fault:   "broken damaged defective faulty fee fees overcharged extra wrong incorrect compensation",
	broken:  "broken damaged defective faulty",
	know:    "recognise recognize recognised recognized authorise authorize authorised authorized familiar remember permit",
	acted:   "make made making order ordered buy bought place placed purchase purchased create created complete completed charge put do did done initiate withdraw take use request set approve",
	fraud:   "fraud fraudulent fraudulently fraudster hacked hacker scam scammed scammer cloned compromised unauthorised unauthorized phished phishing",
	unknown: "unknown unrecognised unrecognized unfamiliar random strange weird mysterious suspicious unexplained odd unusual false dispute disputing",
	card:    "card cards account wallet phone details pin credentials",
	stolen:  "stolen lost stole theft robbed",
	be:      "is was are were be been being isnt wasnt",
	use:     "used using uses took stole withdrew accessed hacked charged charging made makes making ordered",
})

func build(sets map[class]string) map[string]class {
	out := make(map[string]class, 512)
	for c, words := range sets {
		start := 0
		for i := 0; i <= len(words); i++ {
			if i == len(words) || words[i] == ' ' {
				if i > start {
					out[words[start:i]] |= c
				}
				start = i + 1
			}
		}
	}
	return out
}
