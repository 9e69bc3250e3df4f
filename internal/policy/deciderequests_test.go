package policy

import (
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestDecideRequests checks statements about HTTP requests.
func TestDecideRequests(t *testing.T) {
	const (
		enforce = v1alpha1.ModeEnforce
		audit   = v1alpha1.ModeAudit
	)
	a, d := Ref{"p-a", "a"}, Ref{"p-d", "d"}
	testDecide(t, map[string]decideCase{
		"HTTP": {
			reason: "method and path of an action",
			world:  list{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("POST", "/orders/7")),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPAnchored": {
			reason: "the expressions are anchored",
			world:  list{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("POST", "/orders7")),
			want:   DefaultDenied,
		},
		"HTTPHalfKnown": {
			reason: "of a request of which only the method is known, an allow reads the path as a match",
			world:  list{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("POST", "")),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPHalfOther": {
			reason: "but what is known has to match",
			world:  list{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("PUT", "")),
			want:   DefaultDenied,
		},
		"HTTPQueryString": {
			reason: "the path is with its query string, as Envoy's :path",
			world:  list{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("POST", "/orders?id=7")),
			want:   DefaultDenied,
		},
		"HTTPMethod": {
			reason: "another method",
			world:  list{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("PUT", "/orders")),
			want:   DefaultDenied,
		},
		"HTTPUnknown": {
			reason: "an allow matches the connection while the request is unknown",
			world:  list{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("", "")),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPAudit": {
			reason: "in Audit alone, an allow of requests is one",
			world:  list{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, audit)},
			query:  ask(requesting("POST", "/orders")),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPAuditOther": {
			reason: "in Audit alone, other requests are let through and reported",
			world:  list{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, audit)},
			query:  ask(requesting("PUT", "/orders")),
			want:   Audited,
		},
		"HTTPAuditClosed": {
			reason: "an allow of requests in Audit does not open what another resource of the pod closes",
			world:  list{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, audit), protect(bobs, enforce)},
			query:  ask(requesting("POST", "/orders"), on(shop, bobs)),
			want:   DefaultDenied,
		},
		"HTTPAuditFirst": {
			reason: "in whatever order the resources are named",
			world:  list{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, audit), protect(bobs, enforce)},
			query:  ask(requesting("", ""), on(bobs, shop)),
			want:   DefaultDenied,
		},
		"HTTPAuditWhole": {
			reason: "an allow of connections in Audit does open it",
			world:  list{statementOf("a", Allow, app888, "web:connect", shop), protect(shop, audit), protect(bobs, enforce)},
			query:  ask(requesting("PUT", "/"), on(shop, bobs)),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPDenyUnknown": {
			reason: "a deny of some requests does not deny the connection",
			world:  list{statementOf("a", Allow, app888, "web:connect", shop), statementOf("d", Deny, app888, "web:read", shop), protect(shop, enforce)},
			query:  ask(requesting("", "")),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPDeny": {
			reason: "a deny of a request that is known",
			world:  list{statementOf("a", Allow, app888, "web:connect", shop), statementOf("d", Deny, app888, "web:read", shop), protect(shop, enforce)},
			query:  ask(requesting("GET", "/")),
			want:   Denied,
			by:     refs{d},
		},
		"HTTPWithout": {
			reason: "an allow without HTTP on the same port wins over one with it",
			world:  list{statementOf("b", Allow, app888, "web:orders", shop), statementOf("a", Allow, app888, "web:connect", shop), protect(shop, enforce)},
			query:  ask(requesting("DELETE", "/")),
			want:   Allowed,
			by:     refs{a},
		},

		"HTTPByAction": {
			reason: "a request that is known by its action only",
			world:  list{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("", ""), of("web:orders")),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPByOther": {
			reason: "an allow of other requests does not count for it",
			world:  list{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("", ""), of("web:read")),
			want:   DefaultDenied,
		},
		"HTTPByNone": {
			reason: "no allow of requests counts for a request of no action",
			world:  list{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("", ""), of(NoAction)),
			want:   DefaultDenied,
		},
		"HTTPByNoneWhole": {
			reason: "an allow of connections does",
			world:  list{statementOf("a", Allow, app888, "web:connect", shop), protect(shop, enforce)},
			query:  ask(requesting("", ""), of(NoAction)),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPByActionDeny": {
			reason: "a deny of its action counts",
			world:  list{statementOf("a", Allow, app888, "web:connect", shop), statementOf("d", Deny, app888, "web:read", shop), protect(shop, enforce)},
			query:  ask(requesting("", ""), of("web:read")),
			want:   Denied,
			by:     refs{d},
		},
	})
}
