package triage

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// tongues holds, without accents, the words of a double charge in Spanish,
// Portuguese, French and German. Words that mean something else in English stay
// out.
var tongues = build(map[class]string{
	repeat: "doble doblemente duplicado duplicada duplicados duplicadas duplicidad duplicaron duplico duplicidade dobro duplamente " +
		"double doublee doublon doublons doublement doppelt doppelte doppelten doppelter doppeltes zweimal dreimal",
	several: "dos tres dois duas deux trois zwei drei beide ambos ambas",
	times:   "veces vezes fois mal",
	charge: "cobrado cobrada cobrados cobradas cobraron cobro cobros cobrar cobran cobre cobraram cobranca cobrancas cargado cargada cargaron cargos pago pagos pagado pague pagamos " +
		"debitado debitada debitaron debitaram descontado descontada descontaron descontaram facturado facturada faturado faturada pagamento pagamentos paguei compra " +
		"abgebucht abbuchung abbuchungen abgezogen belastet belastung berechnet bezahlt gezahlt zahlung zahlungen gebucht eingezogen kassiert " +
		"debite debitee debites debitees preleve prelevee preleves prelevement prelevements facture facturee factures paye payee paiement paiements encaisse",
	charges: "cobros pagos cargos cobrancas pagamentos abbuchungen zahlungen prelevements paiements debitos",
	refund: "reembolso reembolsos reembolsar reembolse reembolsen reembolsem reembolsado devolucion devolver devuelvan devuelva devuelvanme devolvam devolva devolucao " +
		"estorno estornar estorne estornem remboursement rembourser remboursez rembourse " +
		"ruckerstattung rueckerstattung ruckzahlung rueckzahlung erstattung erstatten erstatte erstattet zuruckerstatten zuruck zurueck",
	sum:     "dinero dinheiro argent geld importe betrag montant monto valor",
	query:   "cuando quando quand wann",
	absent:  "nicht kein keine keinen nao nunca pas jamais ningun ninguna nenhum nenhuma aucun aucune",
	want:    "quiero quisiera bitte quero queria veuillez favor",
	cancel:  "cancelar cancele cancelen cancela anular anule annulez annuler annule storniere stornieren storno",
	request: "solicitud peticion solicitacao demande anfrage antrag reclamacion reclamacao reclamation",
	thing:   "pedido pedidos orden encomenda bestellung auftrag commande",
	mine:    "mi mein meine meinen meiner meu minha mon",
})

// scripts holds the same in Japanese, whose words nothing parts.
var scripts = map[class][]string{
	repeat:  {"二重", "重複", "二回", "2回"},
	charge:  {"請求", "決済", "引き落と", "引落", "支払", "課金"},
	refund:  {"返金", "払い戻"},
	cancel:  {"キャンセル", "取り消", "取消"},
	request: {"依頼", "申請"},
	thing:   {"注文"},
	query:   {"いつ"},
}

// orderWords say that an order follows.
var orderWords = fields("order orders pedido orden encomenda bestellung bestellnummer auftrag auftragsnummer commande ऑर्डर")

// refusals are forms that, denied, want no refund.
var refusals = fields("reembolse reembolsen reembolsem reembolsar devuelvan devuelva devolver devolvam estorne estornem estornar remboursez rembourser erstatten erstatte zuruckerstatten")

func fields(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// fold gives a word in lower case without accents.
func fold(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		r = unicode.ToLower(r)
		switch {
		case r >= 0x300 && r <= 0x36f:
			return -1
		case r >= 0xe0 && r <= 0xff:
			return rune("aaaaaaaceeeeiiiidnooooo ouuuuyty"[r-0xe0])
		}
		return r
	}, s)
}

// classOf gives the meanings of a word.
func classOf(low string) class {
	f := fold(low)
	c := lexicon[low] | tongues[f]
	if r, _ := utf8.DecodeLastRuneInString(low); r >= 0x3000 {
		for k, words := range scripts {
			for _, w := range words {
				if strings.Contains(low, w) {
					c |= k
				}
			}
		}
		if strings.HasPrefix(low, "回") { // 2回
			c |= times
		}
	}
	return c
}

// orderWord reports a word that an order's reference follows.
func (w *words) orderWord(i int) bool {
	return orderWords[fold(w.low(i))] || strings.Contains(w.low(i), "注文")
}

// deniedWithin reports a Japanese word that holds both the cue and its denial:
// 二重に請求されていません.
func (w *words) deniedWithin(i int) bool {
	for _, cue := range scripts[repeat] {
		_, rest, found := strings.Cut(w.low(i), cue)
		if !found {
			continue
		}
		for _, end := range []string{"が", "ので", "けど", "から"} {
			rest, _, _ = strings.Cut(rest, end)
		}
		for _, no := range []string{"ません", "ない", "なかった"} {
			if strings.Contains(rest, no) {
				return true
			}
		}
	}
	return false
}

// refuses reports a refund that is declined in another tongue: ne remboursez
// rien, no reembolse nada.
func (w *words) refuses() bool {
	for i := range w.Tokens {
		f := fold(w.low(i))
		if refusals[f] && (w.is(i-1, absent) || w.low(i-1) == "ne" || w.oneOf(i+1, "rien", "nada", "pas") || w.oneOf(i-1, "nichts")) {
			return true
		}
		if strings.Contains(w.low(i), "返金しないで") || strings.Contains(w.low(i), "返金は不要") {
			return true
		}
	}
	return false
}
