package bench

import "context"

// Session is the session of a user in the portal, for other packages.
type Session struct{ person *person }

// Login logs a user in as a browser does.
func Login(ctx context.Context, portal, name string) (Session, error) {
	p, err := login(ctx, portal, name)
	return Session{p}, err
}

// Call sends one request to the API. in and out may be nil.
func (s Session) Call(ctx context.Context, method, path string, in, out any) error {
	return s.person.call(ctx, method, path, in, out)
}
