package reviewapi

import "testing"

func TestHarmless(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "orders": "orders", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1",
		"＝1+1": "'＝1+1", "＠SUM(A1)": "'＠SUM(A1)", "缓存": "缓存", "a=b": "a=b",
	} {
		if got := harmless(in); got != want {
			t.Errorf("harmless(%q) = %q, want %q", in, got, want)
		}
	}
}
