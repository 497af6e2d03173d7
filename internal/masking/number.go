package masking

// maxGap is the most separators between two groups of one number, maxBetween
// the longest markup there.
const maxGap, maxBetween = 3, 64

const minCard, maxCard = 13, 19

// group is a run of digits in a view.
type group struct {
	i, j int
	// joined: only a gap parts it from the group before; loose: that gap is
	// more than spaces and dashes.
	joined, loose bool
	// exempt: part of a date, of an identifier of ours, or a dialling code.
	exempt bool
}

// numbers finds what a checksum or a fixed shape gives away, in order.
func (v *view) numbers() []span {
	var out []span
	for i := 0; i < len(v.b); i++ {
		if !letter(v.b[i]) || !v.starts(i) {
			continue
		}
		if j := v.iban(i); j > 0 {
			out = append(out, span{i, j, account})
			i = j - 1
		} else if v.ifsc(i) {
			out = append(out, span{i, i + 11, branch})
			i += 10
		}
	}
	for _, s := range out {
		for i := s.i; i < s.j; i++ {
			v.b[i] = foreignOther // taken
		}
	}
	return merge(out, v.cards())
}

// starts and ends report the edges of a run of letters and digits. What is
// masked within a run does not make an edge.
func (v *view) starts(i int) bool {
	if i == 0 {
		return true
	}
	c := v.b[i-1]
	return !alnum(c) && c != '_' && (c != ']' || !tagEnds(v.b[:i]))
}

func (v *view) ends(j int) bool {
	c := v.byteAt(j)
	if c == '[' {
		k, _ := tag(v.b, j)
		return k == 0
	}
	return !alnum(c) && c != '_'
}

// merge joins two lists that are in order and apart from each other.
func merge(a, b []span) []span {
	if len(a) == 0 {
		return b
	}
	out := make([]span, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].i < b[0].i {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// cards finds whole groups that make a card number. Where several readings
// overlap, all of their digits go: guessing wrong would leave the last four.
func (v *view) cards() []span {
	groups := v.groups()
	var out []span
	for a := range groups {
		if groups[a].exempt {
			continue
		}
		end, digits, loose := 0, 0, false
		var l luhn
		for b := a; b < len(groups); b++ {
			g := groups[b]
			if b > a && !g.joined || g.exempt {
				break
			}
			if digits += g.j - g.i; digits > maxCard {
				break
			}
			loose = loose || b > a && g.loose
			for _, c := range v.b[g.i:g.j] {
				l.add(c - '0')
			}
			if digits >= minCard && l.valid() && (!loose || v.issued(groups[a])) {
				end = g.j
			}
		}
		if end == 0 {
			continue
		}
		if n := len(out); n > 0 && groups[a].i < out[n-1].j {
			out[n-1].j = max(out[n-1].j, end)
		} else {
			out = append(out, span{groups[a].i, end, card})
		}
	}
	return out
}

// issued reports a group that begins as card numbers do. Groups that a list or
// a date may hold as well have to.
func (v *view) issued(g group) bool {
	switch c := v.b[g.i]; c {
	case '4', '5', '6':
		return true
	case '2', '3':
		next := v.b[g.i+1:]
		for len(next) > 0 && !digit(next[0]) && !letter(next[0]) {
			next = next[1:]
		}
		return len(next) > 0 && (c == '3' && next[0] >= '0' && next[0] <= '8' || c == '2' && next[0] >= '2' && next[0] <= '7')
	}
	return false
}

// luhn holds the check sum for both parities, as the number may go on.
type luhn struct{ last, other int }

func (l *luhn) add(d byte) {
	twice := 2 * int(d)
	if twice > 9 {
		twice -= 9
	}
	// The digit added is undoubled in the sum that ends here.
	l.last, l.other = l.other+int(d), l.last+twice
}

func (l *luhn) valid() bool { return l.last%10 == 0 }

// ours are prefixes of identifiers that are not card numbers.
var ours = map[string]bool{
	"pay": true, "payment": true, "rfnd": true, "refund": true, "re": true, "ref": true, "txn": true, "order": true, "ord": true,
	"inv": true, "cust": true, "case": true, "apr": true, "dp": true, "dispute": true, "ch": true, "pi": true, "call": true,
}

func (v *view) groups() []group {
	var out []group
	ident := 0 // where the current run of letters, digits and '_' starts
	for i := 0; i < len(v.b); {
		c := v.b[i]
		if c == '<' {
			if end := v.bareTag(i); end > 0 { // the digit of <h1> is no group
				i, ident = end, end
				continue
			}
		}
		if !digit(c) {
			if !letter(c) && c != '_' {
				ident = i + 1
			}
			i++
			continue
		}
		g := group{i: i, j: i + 1}
		for digit(v.byteAt(g.j)) {
			g.j++
		}
		if n := len(out); n > 0 {
			g.joined, g.loose = v.gap(out[n-1], g)
		}
		size := g.j - g.i
		g.exempt = v.byteAt(i-1) == '+' && (size <= 3 || size >= 10 && size <= 13) || v.byteAt(i-1) == '_' && v.ours(ident)
		out = append(out, g)
		i = g.j
	}
	for k := 0; k+2 < len(out); k++ {
		if v.date(out[k : k+3]) {
			out[k].exempt, out[k+1].exempt, out[k+2].exempt = true, true, true
		}
	}
	return out
}

func (v *view) ours(ident int) bool {
	j := ident
	for letter(v.byteAt(j)) {
		j++
	}
	return v.byteAt(j) == '_' && ours[string(v.b[ident:j])]
}

// gap reports whether what is between two groups may be inside one number, and
// whether it is more than spaces and dashes. Marks that part the numbers of
// a list, an amount or a time need groups that none of these has.
func (v *view) gap(a, b group) (joined, loose bool) {
	between := v.b[a.j:b.i]
	if len(between) > maxBetween {
		return false, false
	}
	long := a.j-a.i >= 4 && b.j-b.i >= 3
	if len(between) == 1 && between[0] == '.' {
		return a.j-a.i >= 4 && b.j-b.i >= 4, false // no decimals
	}
	n := 0
	for i := 0; i < len(between); {
		c := between[i]
		if end := markupAt(between, i); end > 0 {
			i, loose = end, true
			continue
		}
		i++
		switch {
		case c == '*' || c == '`':
			loose = true
			continue
		case c == ' ' || c == '-':
		case c == ',' || c == '.' || c == ':' || c == ';' || c == '(' || c == ')':
			if !long {
				return false, false
			}
			loose = true
		case c == '$' || c == '+' || c == '#' || c == '%' || c == '@' || c == '[' || c == ']' || c == '<' || c == '>' || alnum(c):
			return false, false
		default:
			loose = true
		}
		n++
	}
	return n <= maxGap, loose
}

// markupAt gives the end of a tag or an entity at i, or 0.
func markupAt(b []byte, i int) int {
	var last byte
	switch b[i] {
	case '<':
		if i+1 < len(b) && (ascii(b[i+1]) || b[i+1] == '/' || b[i+1] == '!') {
			last = '>'
		}
	case '&':
		last = ';'
	}
	for j := i + 1; last != 0 && j < len(b); j++ {
		switch c := b[j]; {
		case c == last:
			return j + 1
		case last == ';' && !ascii(c), c == '\n':
			return 0
		}
	}
	return 0
}

// bareTag gives the end of a tag that is a name alone, as <h1> and </h1>, or 0.
func (v *view) bareTag(i int) int {
	j := i + 1
	if v.byteAt(j) == '/' {
		j++
	}
	for from := j; ascii(v.byteAt(j)) && j < from+10; {
		j++
	}
	if !ascii(v.byteAt(j - 1)) {
		return 0
	}
	if digit(v.byteAt(j)) {
		j++
	}
	if v.byteAt(j) != '>' {
		return 0
	}
	return j + 1
}

// date reports 2026-03-12 or 12/03/2026.
func (v *view) date(g []group) bool {
	by := v.byteAt(g[0].j)
	if by != '-' && by != '/' && by != '.' || g[0].j+1 != g[1].i || v.byteAt(g[1].j) != by || g[1].j+1 != g[2].i {
		return false
	}
	if v.byteAt(g[0].i-1) == by || v.byteAt(g[2].j) == by && digit(v.byteAt(g[2].j+1)) || v.byteAt(g[2].j) == '-' {
		return false
	}
	year, day := v.b[g[0].i:g[0].j], v.b[g[2].i:g[2].j]
	if len(day) == 4 {
		year, day = day, year
	}
	month := v.b[g[1].i:g[1].j]
	return len(year) == 4 && (year[0] == '2' && year[1] == '0' || year[0] == '1' && year[1] == '9') && upTo(month, 12) && upTo(day, 31)
}

func upTo(b []byte, most int) bool {
	if len(b) == 0 || len(b) > 2 {
		return false
	}
	n := 0
	for _, c := range b {
		n = n*10 + int(c-'0')
	}
	return n >= 1 && n <= most
}

const minIBAN, maxIBAN = 15, 34

// iban gives the end of the longest account number that starts at i, or 0.
func (v *view) iban(i int) int {
	if i+4 > len(v.b) || !ascii(v.b[i]) || !ascii(v.b[i+1]) || !digit(v.b[i+2]) || !digit(v.b[i+3]) {
		return 0
	}
	head := 0 // country and check digits, which the sum takes last
	for _, c := range v.b[i : i+4] {
		head = mod97(head, c)
	}
	sum, end, digits, gap := 0, 0, 0, 0
	for j, n := i+4, 4; j < len(v.b) && n < maxIBAN; j++ {
		switch c := v.b[j]; {
		case digit(c):
			digits++
			fallthrough
		case ascii(c):
			sum = mod97(sum, c)
			n++
			gap = 0
		case (c == ' ' || c == '-') && gap < maxGap:
			gap++
			continue
		default:
			return end
		}
		// Letters there are two digits each: six in all.
		if n >= minIBAN && digits >= 6 && v.ends(j+1) && (sum*1_000_000+head)%97 == 1 {
			end = j + 1
		}
	}
	return end
}

func mod97(sum int, c byte) int {
	if digit(c) {
		return (sum*10 + int(c-'0')) % 97
	}
	return (sum*100 + int(c-'a') + 10) % 97
}

// ifsc reports an Indian branch code at i; in lower case it is a word.
func (v *view) ifsc(i int) bool {
	if i+11 > len(v.b) || v.b[i+4] != '0' || !v.ends(i+11) {
		return false
	}
	for k := i; k < i+11; k++ {
		c := v.b[k]
		if k < i+4 && !ascii(c) || !ascii(c) && !digit(c) {
			return false
		}
		if raw := v.text[v.at[k]]; raw >= 'a' && raw <= 'z' {
			return false
		}
	}
	return true
}

func ascii(c byte) bool { return c >= 'a' && c <= 'z' }
