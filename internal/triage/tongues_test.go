package triage_test

import (
	"slices"
	"testing"

	"github.com/amends-dev/amends/internal/triage"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func TestOtherTongues(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Se me cobró dos veces el pedido 8472",
		"Me han cobrado dos veces el pedido 8472, quiero que me devuelvan uno de los pagos",
		"Hay un cargo duplicado en el pedido nº 8472, solicito el reembolso",
		"SE ME COBRO\u0301 DOS VECES EL PEDIDO 8472",
		"Bestellung 8472 wurde doppelt abgebucht",
		"Bestellung Nr. 8472 wurde zweimal abgebucht, bitte um Rückerstattung.",
		"Für die Bestellung 8472 wurde meine Karte zwei Mal belastet",
		"O pedido 8472 foi cobrado duas vezes",
		"O pedido 8472 foi cobrado em duplicidade. Quero o estorno.",
		"La commande 8472 a été débitée deux fois",
		"la commande numéro 8472 a ete prelevee deux fois, remboursez-moi",
		"注文8472が二重に請求されました",
		"私の注文8472が二重に請求されました。返金してください。",
		"注文番号8472で2回決済されました",
		"注文8472が二重に請求されましたが返金されていません",
	} {
		got := ask(triage.Read(text), "8472")
		if outcome(got) != "SUPPORTED" || got.GetOrderId() != "8472" {
			t.Errorf("%q is %s %q, %v %v", text, outcome(got), got.GetReason(), got.GetIntents(), got.GetOrderRefs())
		}
		if r := triage.Read(text); !r.Explicit || !slices.Equal(r.Refs, []string{"8472"}) {
			t.Errorf("%q names %v, explicit %v", text, r.Refs, r.Explicit)
		}
	}
	// Denied, nothing is refunded on it without a person.
	for _, text := range []string{
		"El pedido 8472 no se cobró dos veces",
		"Bestellung 8472 wurde nicht doppelt abgebucht",
		"O pedido 8472 não foi cobrado duas vezes",
		"La commande 8472 n'a pas été débitée deux fois",
		"注文8472は二重に請求されていません",
		"La commande 8472 a été débitée deux fois, mais ne remboursez rien",
		"El pedido 8472 se cobró dos veces, pero no reembolse nada",
	} {
		if got := ask(triage.Read(text), "8472"); got.GetOutcome() == amendsv1.TriageOutcome_TRIAGE_OUTCOME_SUPPORTED {
			t.Errorf("%q is %s, %v", text, outcome(got), got.GetIntents())
		}
	}
	for _, text := range []string{"annulez ma demande, ne remboursez rien s'il vous plaît", "cancele mi solicitud", "bitte storniere meine Anfrage"} {
		if got := ask(triage.Read(text)); outcome(got) != "CANCEL" {
			t.Errorf("%q is %s, %v", text, outcome(got), got.GetIntents())
		}
	}
}

// Whoever named an order of theirs is not asked for its number, whatever the
// rest says.
func TestAKnownOrderIsNotAskedFor(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"заказ 8472 списан дважды", "order 8472", "订单8472被重复扣款", "ordine 8472?", "order 8472 was not charged twice"} {
		if got := ask(triage.Read(text), "8472"); outcome(got) != "NEEDS_PERSON" {
			t.Errorf("%q is %s %q", text, outcome(got), got.GetReason())
		}
		if got := ask(triage.Read(text)); outcome(got) != "CLARIFY" {
			t.Errorf("%q of nobody's order is %s %q", text, outcome(got), got.GetReason())
		}
	}
}
