package bench

import "context"

// Session is a person's in the portal, for other packages that do what people do.
type Session struct{ person *person }

// Login goes the browser's way.
func Login(ctx context.Context, portal, name string) (Session, error) {
	p, err := login(ctx, portal, name)
	return Session{p}, err
}

// Call does one request of the API; in and out may be nil.
func (s Session) Call(ctx context.Context, method, path string, in, out any) error {
	return s.person.call(ctx, method, path, in, out)
}
