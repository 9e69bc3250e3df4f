package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Lock is an exclusive lock of a state folder. The kernel releases it when the process that holds it ends, for whatever reason.
type Lock struct{ file *os.File }

// LockedError means that another run uses the state folder.
type LockedError struct{ Dir, Holder string }

func (e *LockedError) Error() string {
	holder := ""
	if e.Holder != "" {
		holder = " (process " + e.Holder + ")"
	}
	return fmt.Sprintf("another playground%s is using %s; stop it first, or choose another folder with --state-dir", holder, e.Dir)
}

// Acquire takes the lock of the state folder, or returns a *LockedError at once.
func Acquire(stateDir string) (*Lock, error) {
	path := filepath.Join(stateDir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the state folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		holder, _ := os.ReadFile(path) // only for the message
		return nil, &LockedError{Dir: stateDir, Holder: strings.TrimSpace(string(holder))}
	}
	if err = f.Truncate(0); err == nil {
		_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	if err != nil {
		_ = f.Close() // nothing was written that counts
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return &Lock{file: f}, nil
}

// Release releases the lock. It keeps the file, because removing it would let two runs lock two different files.
func (l *Lock) Release() {
	_ = l.file.Close() // the kernel releases the lock in any case
}
