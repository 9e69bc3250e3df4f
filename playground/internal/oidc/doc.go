// Package oidc is the playground's OpenID provider: the demo people log in with a password that everybody knows.
//
// It owns the login page and the signing key. Everything else that happens, an open login or an issued token, lives in
// memory only; a restart costs the logins that are under way, and nothing that was logged in.
package oidc
