package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// The demo runs both endings of the founding request and says so.
func TestDemo(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run([]string{"demo"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	for _, want := range []string{"v9    VERIFIED_CLOSED", "refund rf_5521 of 200000 INR on pay_8472_b", "v5    HOLD_FOR_EVIDENCE", "no refund exists", "Both endings are as specified."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not say %q:\n%s", want, out.String())
		}
	}
}

// Its checks can fail: a path that ended nowhere is not as specified.
func TestDemoChecksCanFail(t *testing.T) {
	t.Parallel()
	if len(checkA(ended{})) == 0 || len(checkB(ended{})) == 0 {
		t.Error("a path without a case passes")
	}
}

func TestBenchCountsWhatItMade(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run([]string{"bench", "--cases", "12", "--concurrency", "4", "--sync", "default", "--json"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs.String())
	}
	var res map[string]any
	if err := json.Unmarshal(out.Bytes(), &res); err != nil {
		t.Fatal(err)
	}
	keys := []string{
		"cases", "errors", "refunds", "cases_per_s", "p50_ms", "p95_ms", "p99_ms", "synced_per_case", "persisted_per_case",
		"bytes_per_case", "cpu_ms_per_case", "peak_rss_mb", "sync", "concurrency",
	}
	for _, k := range keys {
		if _, ok := res[k]; !ok {
			t.Errorf("key %s is missing", k)
		}
	}
	for k := range res {
		if !slices.Contains(keys, k) {
			t.Errorf("key %s is not one of the result's", k)
		}
	}
	if res["cases"] != 12.0 || res["refunds"] != 12.0 || res["errors"] != 0.0 || res["sync"] != "default" {
		t.Errorf("result %v", res)
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"nonsense"}, {"bench", "--cases", "0"}, {"bench", "--sync", "sometimes"}, {"sandbox", "--ledger", "/no/such/file"}} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v ends with code %d and %q", args, code, errs.String())
		}
	}
}

func TestCompletes(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"complete -F _amends_dev amends-dev\n": {"completion", "bash"},
		"off\n":                                {"__complete", "--", "--log-level", "o"},
		":files\n":                             {"__complete", "--", "up", "--dir", ""},
	} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 0 || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%v: code %d, %q%q", args, code, out.String(), errs.String())
		}
	}
}
