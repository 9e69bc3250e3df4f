// Package oidc is the OpenID provider of the playground: the users of the demo log in with a shared, public password.
//
// The package contains the login page and the signing key. Pending logins and issued tokens are kept in memory only; a restart ends
// pending logins and does not affect existing sessions.
package oidc
