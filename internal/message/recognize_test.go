package message_test

import (
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/message"
)

var refusals = []string{"refusal", "istio", "members", "names", "map", "name", "port"}

func TestRecognize(t *testing.T) {
	names := message.NamesOf([]string{"m1", "m2"}, 5)
	for _, want := range []message.Message{
		message.RefusalNameEach(),
		message.RefusalShadowingDeny("orders/no-batch"),
		message.RefusalInMembers(names, message.IstioNotDeclared()),
		message.RefusalPart("trnv1:app/a b", message.IstioPortRange("redis:connect", 1, 65535)),
		message.RefusalPartAndMore("trnv1:app/1", message.RefusalSubjectUnknown(), 3),
		message.RefusalOtherEnforcer("istio", []string{"trnv1:a", "trnv1:b"}),
		message.RefusalInMembers(names, message.IstioExpression("http:get", message.IstioExpressionMiddle("a.*b"))),
	} {
		if got := message.Recognize(want.Text, refusals...); got != want {
			t.Errorf("%q is recognized as %+v, want %+v", want.Text, got, want)
		}
	}
}

// TestRecognizeReturnsUnknownTextsAsTheyAre checks that no template is chosen that the text only resembles.
func TestRecognizeReturnsUnknownTextsAsTheyAre(t *testing.T) {
	for _, text := range []string{
		"", "no Envoy answers", "name each subject!", "Name each subject", "left out because the deny  is refused and could have overridden it",
		"in m1, m2: a reason of a later version", // the reason decides whether the whole is known
		strings.Repeat("in a: ", 1000) + "name each subject",
	} {
		if got := message.Recognize(text, refusals...); got != message.Verbatim(text) {
			t.Errorf("%q is recognized as %+v", text, got)
		}
	}
	if got := message.Recognize(message.RefusalNameEach().Text, "istio"); got.Code != "verbatim" {
		t.Errorf("a message of another family is recognized: %+v", got)
	}
}

// FuzzRecognize checks that a text never changes, whatever it is recognized as, and that the time is bounded.
func FuzzRecognize(f *testing.F) {
	f.Add("in m1, m2: trnv1:app/1: name each subject (and 3 more)")
	f.Add(strings.Repeat("a: ", 1300))
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ToValidUTF8(text, "") != text {
			return
		}
		if m := message.Recognize(text, refusals...); m.Text != text {
			t.Errorf("the text of %q became %q", text, m.Text)
		}
	})
}
