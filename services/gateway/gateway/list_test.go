package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/readmodel"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// numbered gives the view of case n, opened n minutes after the first.
func numbered(n int, version uint64, state string) *amendsv1.CaseView {
	v := view(fmt.Sprintf("req-%d", n), version, state)
	v.OpenedAt = timestamppb.New(openedAt.Add(time.Duration(n) * time.Minute))
	return v
}

// cases asks for a page; it is awaited, as lists follow at a distance.
func cases(t *testing.T, url, key, query string) (deskapi.CaseList, answer) {
	t.Helper()
	a := ask(t, http.MethodGet, url+"/v1/cases"+query, key, "")
	var out deskapi.CaseList
	if a.status == http.StatusOK {
		if err := json.Unmarshal([]byte(a.body), &out); err != nil {
			t.Fatal(err)
		}
	}
	return out, a
}

func idsOf(l deskapi.CaseList) string {
	var out []string
	for _, c := range l.Cases {
		out = append(out, strings.TrimPrefix(c.CaseID, "req-"))
	}
	return strings.Join(out, " ")
}

func awaitList(t *testing.T, url, key, query, want string) deskapi.CaseList {
	t.Helper()
	var got deskapi.CaseList
	bustest.Await(t, "the list "+want, func() bool {
		var a answer
		got, a = cases(t, url, key, query)
		return a.status == http.StatusOK && idsOf(got) == want
	})
	return got
}

func TestListOfCases(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	base := d.gateway(t)
	for n := 1; n <= 5; n++ {
		d.publish(t, numbered(n, 1, "RECEIVED"))
	}
	v := numbered(3, 4, "VERIFIED_CLOSED")
	v.OrderId = "8472"
	d.publish(t, v)
	all := awaitList(t, base, webKey, "", "5 4 3 2 1")
	if all.Next != "" {
		t.Errorf("more after the whole list: %q", all.Next)
	}
	bustest.Await(t, "the newer version", func() bool {
		all, _ = cases(t, base, webKey, "")
		return all.Cases[2].Version == 4
	})
	third := all.Cases[2]
	if third.State != "VERIFIED_CLOSED" || !third.Closed || third.OrderID != "8472" || third.RequestID != "req-3" ||
		!third.OpenedAt.Equal(openedAt.Add(3*time.Minute)) || third.Links != deskapi.LinksOf("req-3") {
		t.Errorf("case %+v", third)
	}
	awaitList(t, base, webKey, "?state=VERIFIED_CLOSED", "3")

	// A page goes on where the one before ended, whatever is opened meanwhile.
	first, _ := cases(t, base, webKey, "?limit=2")
	if idsOf(first) != "5 4" || first.Next == "" {
		t.Fatalf("first page %q, next %q", idsOf(first), first.Next)
	}
	d.publish(t, numbered(6, 1, "RECEIVED"))
	awaitList(t, base, webKey, "?limit=1", "6")
	second, _ := cases(t, base, webKey, "?limit=2&cursor="+first.Next)
	last, _ := cases(t, base, webKey, "?limit=2&cursor="+second.Next)
	if idsOf(second) != "3 2" || idsOf(last) != "1" || last.Next != "" {
		t.Errorf("then %q and %q, next %q", idsOf(second), idsOf(last), last.Next)
	}
}

// TENANT-1: a list holds the caller's cases, and a cursor does not change whose.
func TestListIsTheCallersOwnTENANT1(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	base := d.gateway(t)
	other, beta := numbered(2, 1, "RECEIVED"), numbered(3, 1, "RECEIVED")
	other.CustomerId, beta.Tenant = "cust_7001", "beta"
	for _, v := range []*amendsv1.CaseView{numbered(1, 1, "RECEIVED"), numbered(4, 1, "RECEIVED"), other, beta} {
		d.publish(t, v)
	}
	awaitList(t, base, webKey, "", "4 1")
	page, _ := cases(t, base, webKey, "?limit=1")
	for key, want := range map[string]string{otherKey: "2", betaKey: "3"} {
		awaitList(t, base, key, "", want)
		if got, _ := cases(t, base, key, "?cursor="+page.Next); idsOf(got) != want {
			t.Errorf("%s after another's cursor: %q, want %q", key, idsOf(got), want)
		}
	}
	if a := ask(t, http.MethodGet, base+"/v1/cases", appKey, "", deskapi.HeaderCustomer, "cust_7001"); !strings.Contains(a.body, `"req-2"`) || strings.Contains(a.body, `"req-1"`) {
		t.Errorf("a channel for its customer: %d %s", a.status, a.body)
	}
}

func TestQueriesAreStrict(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	base := d.gateway(t)
	for _, bad := range []string{
		"limit=0", "limit=101", "limit=-1", "limit=+1", "limit=01", "limit=x", "limit=", "limit=1&limit=2", "limit=1;cursor=",
		"cursor=*", "cursor=8472.%3E", "cursor=" + strings.Repeat("A", 300), "cursor=" + url.QueryEscape("a b"),
		"state=", "state=received", "state=*", "state=A.B", "state=" + strings.Repeat("A", 33),
		"customer=cust_7001", "tenant=beta", "Limit=1", "limit=%zz", strings.Repeat("&", 600),
	} {
		_, a := cases(t, base, webKey, "?"+bad)
		if p := a.problem(t); a.status != http.StatusBadRequest || p.Code != deskapi.CodeQueryInvalid {
			t.Errorf("%q: %d %s", bad, a.status, a.body)
		}
	}
}

func FuzzParseQuery(f *testing.F) {
	for _, s := range []string{"", "limit=20", "limit=7&state=REFUNDED", "cursor=MDE5Y2UxZjk2M2MwOnJlcS0x", "limit=%31", "a=b&a", "state=A;limit=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := parseQuery(raw)
		if err != nil {
			return
		}
		if q.Limit < 1 || q.Limit > readmodel.MaxLimit || q.State != "" && !isState(q.State) {
			t.Errorf("%q gave %+v", raw, q)
		}
		// What was read, written again, reads the same.
		again, err := parseQuery(fmt.Sprintf("limit=%d&cursor=%s", q.Limit, q.After))
		if err != nil || again.After != q.After || again.Limit != q.Limit {
			t.Errorf("%q gave %+v, and that %+v, %v", raw, q, again, err)
		}
	})
}
