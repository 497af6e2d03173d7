package verifier

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// figures are runs of digits with grouping, and references of refunds.
var figures = regexp.MustCompile(`(?i)\b(?:rf|re|rfnd|refund)_\w+|\p{Nd}[\p{Nd}.,]*`)

// unrecorded gives a number or refund reference of a text that no record of
// the world holds, or nothing. It knows nothing of the checker's grammar.
func (w world) unrecorded(text string) string {
	known := []string{
		w.order, "1", "2", "3", "9", "10", "11", "14", "15", "02", "03", "09", "00", "12", "2026", // counts and dates
	}
	for _, f := range w.facts {
		if m := f.GetAmount(); m != nil {
			known = append(known, strconv.FormatInt(m.GetMinor()/100, 10), strconv.FormatInt(m.GetMinor()/1e5, 10), strconv.FormatInt(m.GetMinor()/1e7, 10))
		}
		known = append(known, f.GetRefundId())
	}
	for _, figure := range figures.FindAllString(text, -1) {
		plain := strings.ReplaceAll(strings.Trim(figure, ".,"), ",", "")
		whole, frac, _ := strings.Cut(plain, ".")
		if strings.HasPrefix(figure, "rf_") {
			whole, frac = figure, ""
		}
		if whole = strings.TrimLeft(whole, "0"); whole != "" && (!slices.Contains(known, whole) && !slices.Contains(known, "0"+whole) || strings.Trim(frac, "0") != "") {
			return figure
		}
	}
	return ""
}
