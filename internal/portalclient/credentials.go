package portalclient

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// Login is the token for a portal.
type Login struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Credentials is the content of the user's file of logins: one login for each portal, and the portal that was used last.
type Credentials struct {
	Current string           `json:"current,omitempty"`
	Logins  map[string]Login `json:"logins,omitempty"`

	path string
}

// DefaultFile returns the path of the file of logins: acp/credentials.yaml in the user's configuration folder.
func DefaultFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the configuration folder: %w", err)
	}
	return filepath.Join(dir, "acp", "credentials.yaml"), nil
}

// ReadCredentials reads the file. A missing file counts as empty. It returns an error if other users can read the file.
func ReadCredentials(path string) (*Credentials, error) {
	c := &Credentials{path: path, Logins: map[string]Login{}}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the logins: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others: chmod 600 %s, or log in again after removing it", path, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the logins: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return nil, fmt.Errorf("%s is not a file of logins: remove it and log in again", path)
	}
	if c.Logins == nil {
		c.Logins = map[string]Login{}
	}
	return c, nil
}

// Save replaces the file atomically.
func (c *Credentials) Save() error {
	text, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode the logins: %w", err)
	}
	dir := filepath.Dir(c.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep the login: %w", err)
	}
	f, err := os.CreateTemp(dir, ".credentials-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("keep the login: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.path)
	}
	if err != nil {
		return fmt.Errorf("keep the login: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
