package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// pidRecord identifies one process uniquely, so that a process that later gets the same pid is never signalled.
type pidRecord struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"startTicks"`
	BootID     string `json:"bootID"`
}

func recordOf(pid int) (pidRecord, error) {
	ticks, err := startTicks(pid)
	if err != nil {
		return pidRecord{}, err
	}
	boot, err := bootID()
	return pidRecord{PID: pid, StartTicks: ticks, BootID: boot}, err
}

// alive reports whether exactly the recorded process still runs.
func (r pidRecord) alive() bool {
	if r.PID <= 1 {
		return false
	}
	now, err := recordOf(r.PID)
	return err == nil && now == r
}

func writePIDFile(path string, pid int) error {
	rec, err := recordOf(pid)
	if err != nil {
		return fmt.Errorf("identify process %d: %w", pid, err)
	}
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// EndStale ends processes that an earlier run may have left behind when it was killed, and removes its pid files. It returns the
// names of the processes that it ended. Only the holder of the lock may call it.
func EndStale(runDir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(runDir, "*.pid"))
	if err != nil {
		return nil, err
	}
	var ended []string
	for _, file := range files {
		name := filepath.Base(file[:len(file)-len(".pid")])
		data, err := os.ReadFile(file)
		if err != nil {
			return ended, fmt.Errorf("read pid file of %s: %w", name, err)
		}
		var rec pidRecord
		// A file that is incomplete after a crash identifies no process.
		if json.Unmarshal(data, &rec) == nil && rec.alive() {
			if err := signalGroup(rec.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return ended, fmt.Errorf("end %s (pid %d) of an earlier run: %w", name, rec.PID, err)
			}
			if err := waitGone(rec, 5*time.Second); err != nil {
				return ended, fmt.Errorf("end %s of an earlier run: %w", name, err)
			}
			ended = append(ended, name)
		}
		if err := os.Remove(file); err != nil {
			return ended, fmt.Errorf("remove pid file of %s: %w", name, err)
		}
	}
	return ended, nil
}

func waitGone(rec pidRecord, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for rec.alive() {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d is still there after SIGKILL", rec.PID)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}
