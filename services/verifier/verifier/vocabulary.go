package verifier

import (
	"strings"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// template are the words in which a person may state a fact, besides joints,
// and how often the fact is told with a not.
type template struct {
	words map[string]bool
	nots  int
}

func of(nots int, words string) template { return template{words: set(words), nots: nots} }

var templates = map[amendsv1.ClaimKind]template{
	amendsv1.ClaimKind_CLAIM_KIND_PAYMENTS_FOUND:             of(0, "found find see show shows records payment payments charge charges transaction transactions taken charged debited each"),
	amendsv1.ClaimKind_CLAIM_KIND_DUPLICATE_FOUND:            of(0, "found find see duplicate duplicates duplicated payment payments charge charges amount taken charged paid more than owed time times twice"),
	amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS:              of(0, "refund refunds reference requested pending bank needs further step completed succeeded processed failed cancelled canceled made issued earlier"),
	amendsv1.ClaimKind_CLAIM_KIND_REFUND_FAILED:              of(1, "refund reference did not go through failed bank cancelled canceled"),
	amendsv1.ClaimKind_CLAIM_KIND_NO_REFUND_ON_RECORD:        of(1, "no not refund refunds record records before find found earlier"),
	amendsv1.ClaimKind_CLAIM_KIND_HOLD_NOT_TAKEN:             of(1, "amount hold holds authorisation authorization reserved not taken charged"),
	amendsv1.ClaimKind_CLAIM_KIND_RECHECK_AT:                 of(0, "will look check again"),
	amendsv1.ClaimKind_CLAIM_KIND_OUTSIDE_WINDOW:             of(0, "payment outside older than automatic rule covers period day days"),
	amendsv1.ClaimKind_CLAIM_KIND_NOTHING_TAKEN:              of(1, "no not nothing money payment payments taken charged"),
	amendsv1.ClaimKind_CLAIM_KIND_SPLIT_PART:                 of(0, "paid gift card cash wallet upi netbanking bank transfer"),
	amendsv1.ClaimKind_CLAIM_KIND_ORDER_TOTAL:                of(0, "total together make up paid"),
	amendsv1.ClaimKind_CLAIM_KIND_ORDER_NOT_FOUND:            of(1, "cannot can ca could not find found under account see"),
	amendsv1.ClaimKind_CLAIM_KIND_HANDED_TO_PERSON:           of(0, "request case passed handed forwarded specialist person colleague team who will continue"),
	amendsv1.ClaimKind_CLAIM_KIND_CANCELLED_NOTHING_REFUNDED: of(1, "request case cancelled canceled withdrawn nothing refunded"),
	amendsv1.ClaimKind_CLAIM_KIND_REVIEW_DECLINED:            of(0, "person colleague specialist team request case reviewed looked considered decided against declined carefully"),
	amendsv1.ClaimKind_CLAIM_KIND_PERSON_CAN_REVIEW:          of(0, "person specialist colleague can review request case payment if ask"),
	amendsv1.ClaimKind_CLAIM_KIND_REPLY_BY:                   of(0, "please reply respond answer write"),
	amendsv1.ClaimKind_CLAIM_KIND_EVIDENCE_PENDING:           of(2, "payment records record evidence information not complete yet so nothing decided"),
	amendsv1.ClaimKind_CLAIM_KIND_SENSITIVE_DATA_MASKED:      of(0, "message held what looked like card data or code masked hidden removed before stored"),
}

// joints hold a statement together and say nothing by themselves. No not is
// among them, and nothing that turns a sentence around.
var joints = set("a an the this that these those your you i we our us it its of for to in on at by with from and as also there is are was were has have had been be about order number " +
	"first second third one two three four five six seven eight nine ten both once utc gmt st nd rd th " +
	"inr rs rupee rupees usd dollar dollars eur euro euros gbp jpy yen")

// contrasts part a sentence into statements that each must hold.
var contrasts = set("but however although though while whereas yet still except nevertheless instead")

// Words that begin a question, and those that begin a request.
var (
	interrogatives = set("did do does have has is are was were can could would will may which what when where who whose whom why how")
	auxiliaries    = set("is are was were has had will would did does am be been isnt wasnt")
	requestVerbs   = set("tell send confirm share attach reply provide describe explain write answer name let give show upload forward check compare contact " +
		"call ask add include list choose say do quote make try help clarify specify enter resend correct repeat state")
	politeness = set("please kindly also then either")
)

// factives take what follows them for true.
var factives = set("know knew known see saw seen notice noticed remember recall aware hear heard read understand realise realize")

// asking are words known in questions and requests, besides joints. None of
// them says how a case ended.
var asking = set(
	"please kindly also then either could can may would will did do does not no yes nothing never " +
		"which what when where who whose whom why how whether if or so but because since until before after during between than only just already ever still yet again instead " +
		"he she they them their his her me my mine him theirs ours someone somebody anyone anybody everyone nobody else other others another any some each every all both none most more less many much few enough same different " +
		"tell send sent share attach attached reply provide describe explain write wrote written answer name named let give gave show shows shown upload forward check compare contact contacted call called ask asked asking add include list choose say said quote make made try tried help clarify specify enter resend correct repeat state " +
		"confirm mean meant refer referring recognise recognize recognised recognized know knew known remember recall see saw seen notice noticed look looking find found hear heard read think believe understand aware " +
		"place placed order orders ordered buy bought purchase purchased pay paid paying use used using want wanted need needed like prefer get got receive received keep kept take took taken charge charged charges debited cancel cancelled canceled return returned deliver delivered arrive arrived arrives ship shipped open opened log logged sign signed subscribe subscribed subscription renew renewed book booked visit visited travel travelled stay stayed change changed update updated happen happened work worked works have has had having be been being is are was were am belong belongs own owned live lost stolen stole damaged broken missing wrong matter match matches help happens appear appears appeared claim claimed expect expected authorise authorised authorize authorized went sold sell bought hold held register registered click clicked " +
		"payment payments transaction transactions statement statements bank banks account accounts card cards credit debit gift wallet upi netbanking transfer amount amounts sum money total price receipt receipts invoice bill copy copies screenshot screenshots photo photos photograph photographs picture pictures image images document documents file files proof details detail information reference references number numbers confirmation name names address email emails phone telephone message messages reply app website shop store seller merchant merchants company item items product products goods article parcel package delivery tracking label box date dates day days time times page line entry entries description reason reasons problem question questions part parts case request thing things way person people colleague family friend member members partner child children customer device computer " +
		"first last second third next latest newest older old new full whole exact short clear same possible able available certain right wrong correct yourself myself themselves itself herself himself one ones two three four five six seven eight nine ten once twice thrice here there out up off down over into onto through under above below near next against without within us " +
		"everything anything something nobody ca wo sure possible unless such very too well really together duplicate duplicates dispute disputed hold holds authorisation authorization unknown unexpected evidence records record person month year week access permission contactless online pin owner holder billed billing")

// slots are the words behind which a question may name a thing the verifier
// does not know, such as a lamp.
var slots = set("a an the your this these those my any some which what another each every of by for from with in at about or and named called first second last new old broken damaged missing wrong exact whole same different customer")

// outcomes say how a case ended, or that money went back, in words that no
// question needs.
var outcomes = set(
	"sorted solved resolved fixed settled fulfilled granted won win wins winner winning victory succeeded success successful successfully handled finished complete completed concluded closed processed " +
		"ok okay yours congratulations congrats good great glad happy pleased news enjoy enjoyed enjoying true favour favor upheld entitled eligible deserve deserved owe owed honoured honored satisfied reward rewarded " +
		"wish wishes surprise reimburse payback cashback chargeback compensation sanctioned cleared prevailed valid validated recovered restored undone back " +
		"geld erstattet erstattung zurueck zuruck dinero devuelto devolucion reembolso reembolsado argent rembourse remboursement paisa paise wapas vapas soldi rimborso rimborsato denaro dinheiro devolvido pengar terugbetaald")

func set(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}
