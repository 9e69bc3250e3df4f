package core

import "testing"

func TestHarmlessCell(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "orders": "orders", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1",
		"＝1+1": "'＝1+1", "＠SUM(A1)": "'＠SUM(A1)", "缓存": "缓存", "a=b": "a=b",
	} {
		if got := HarmlessCell(in); got != want {
			t.Errorf("HarmlessCell(%q) = %q, want %q", in, got, want)
		}
	}
}
