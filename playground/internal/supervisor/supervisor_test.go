package supervisor

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// newSupervisor returns a supervisor that restarts processes without noticeable delay and reports events to the channel.
func newSupervisor(t *testing.T) (*Supervisor, chan Event, string) {
	t.Helper()
	dir := t.TempDir()
	events := make(chan Event, 100)
	s := New(Config{
		RunDir: dir, LogDir: dir, Report: func(e Event) { events <- e },
		Backoff: Backoff{First: time.Millisecond, Max: 10 * time.Millisecond, Reset: time.Hour},
	})
	t.Cleanup(s.Close)
	return s, events, dir
}

func sh(name, script string) Spec {
	return Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script}}
}

func mustAdd(t *testing.T, s *Supervisor, spec Spec) {
	t.Helper()
	if err := s.Add(spec); err != nil {
		t.Fatal(err)
	}
}

func statusOf(t *testing.T, s *Supervisor, name string) Status {
	t.Helper()
	for _, st := range s.Status() {
		if st.Name == name {
			return st
		}
	}
	t.Fatalf("no process %s", name)
	return Status{}
}

func next(t *testing.T, events chan Event, kind EventKind) Event {
	t.Helper()
	for {
		select {
		case e := <-events:
			if e.Kind == kind {
				return e
			}
		case <-time.After(time.Minute):
			t.Fatalf("no event %q came", kind)
		}
	}
}

func TestCrashedProcessIsRestarted(t *testing.T) {
	s, events, dir := newSupervisor(t)
	flag := filepath.Join(dir, "second")
	mustAdd(t, s, sh("p", "if [ -e "+flag+" ]; then exec sleep 1000; fi; touch "+flag+"; echo broken; exit 3"))
	if err := s.Start("p"); err != nil {
		t.Fatal(err)
	}
	if e := next(t, events, EventCrashed); !strings.Contains(e.Text, "exit status 3") {
		t.Errorf("the report must say how it ended: %q", e.Text)
	}
	next(t, events, EventStarted)
	if st := statusOf(t, s, "p"); st.State != StateUp || st.Restarts != 1 || st.LastExit != "exit status 3" || st.RSSBytes == 0 {
		t.Errorf("status after a restart: %+v", st)
	}
	if log := Tail(filepath.Join(dir, "p.log"), 10); !strings.Contains(log, "broken") {
		t.Errorf("the log lacks the output: %q", log)
	}
}

func TestStoppedProcessIsNotRestarted(t *testing.T) {
	for verb, stop := range map[string]func(*Supervisor) error{
		"stop": func(s *Supervisor) error { return s.Stop("p") },
		"kill": func(s *Supervisor) error { return s.Kill("p") },
	} {
		t.Run(verb, func(t *testing.T) {
			s, events, dir := newSupervisor(t)
			mustAdd(t, s, sh("p", "exec sleep 1000"))
			if err := s.Start("p"); err != nil {
				t.Fatal(err)
			}
			pid := statusOf(t, s, "p").PID
			if err := stop(s); err != nil {
				t.Fatal(err)
			}
			next(t, events, EventStopped)
			if st := statusOf(t, s, "p"); st.State != StateDown || st.PID != 0 {
				t.Errorf("status after %s: %+v", verb, st)
			}
			if _, err := startTicks(pid); err == nil {
				t.Errorf("process %d is still there", pid)
			}
			if files, _ := filepath.Glob(filepath.Join(dir, "*.pid")); len(files) != 0 {
				t.Errorf("pid files are left: %v", files)
			}
			if err := s.Restart("p"); err != nil {
				t.Fatal(err)
			}
			// A reader that saw the process held down must also see that it is not any more.
			next(t, events, EventStarted)
			if st := statusOf(t, s, "p"); st.State != StateUp || st.PID == pid {
				t.Errorf("status after the restart: %+v", st)
			}
		})
	}
}

func TestStopIsBounded(t *testing.T) {
	s, _, _ := newSupervisor(t)
	spec := sh("p", "trap '' TERM; echo ready; while :; do sleep 1000; done")
	spec.StopTimeout = 50 * time.Millisecond
	log := ""
	spec.Ready = func(context.Context) error {
		if log = Tail(statusOf(t, s, "p").Log, 5); !strings.Contains(log, "ready") {
			return errors.New("not yet")
		}
		return nil
	}
	mustAdd(t, s, spec)
	if err := s.StartAndWait(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop("p"); err != nil {
		t.Fatal(err)
	}
	if st := statusOf(t, s, "p"); st.LastExit != "signal: killed" {
		t.Errorf("a process that ignores SIGTERM must be killed, it ended by %q", st.LastExit)
	}
}

func TestWaitReadyGivesUpOnAProcessThatKeepsEnding(t *testing.T) {
	s, _, _ := newSupervisor(t)
	spec := sh("p", "echo the reason; exit 1")
	spec.Ready = func(context.Context) error { return errors.New("never") }
	mustAdd(t, s, spec)
	if err := os.WriteFile(statusOf(t, s, "p").Log, []byte("of an earlier run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := s.StartAndWait(t.Context(), "p")
	var exited *ExitedError
	if !errors.As(err, &exited) || strings.Count(exited.Tail, "the reason") != 1 || strings.Contains(exited.Tail, "earlier run") {
		t.Errorf("got %v, want an ExitedError with what the log says since the last start", err)
	}
}

func TestUnknownAndClosed(t *testing.T) {
	s, _, _ := newSupervisor(t)
	mustAdd(t, s, sh("p", "exec sleep 1000"))
	if err := s.Start("q"); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown name: %v", err)
	}
	if err := s.Add(sh("p", "true")); err == nil {
		t.Error("a name must be unique")
	}
	s.Close()
	if err := s.Start("p"); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestCloseStopsHigherLayersFirst(t *testing.T) {
	dir := t.TempDir()
	order := filepath.Join(dir, "order")
	s := New(Config{RunDir: dir, LogDir: dir})
	for i, name := range []string{"store", "server", "program"} {
		up := filepath.Join(dir, name+".up")
		spec := sh(name, "trap 'echo "+name+" >> "+order+"; exit 0' TERM; touch "+up+"; while :; do sleep 0.01; done")
		spec.Layer = i
		spec.Ready = func(context.Context) error { _, err := os.Stat(up); return err }
		mustAdd(t, s, spec)
		if err := s.StartAndWait(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	got, err := os.ReadFile(order)
	if err != nil || string(got) != "program\nserver\nstore\n" {
		t.Errorf("order %q, %v", got, err)
	}
}

func TestEndStale(t *testing.T) {
	dir := t.TempDir()
	ours, foreign := exec.Command("sleep", "1000"), exec.Command("sleep", "1000")
	for _, cmd := range []*exec.Cmd{ours, foreign} {
		if err := start(cmd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
	}
	if err := writePIDFile(filepath.Join(dir, "ours.pid"), ours.Process.Pid); err != nil {
		t.Fatal(err)
	}
	// The pid belongs to another process with another start time, as after pids wrapped around.
	rec, err := recordOf(foreign.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	rec.StartTicks--
	if rec.alive() {
		t.Fatal("a record with another start time must not be taken for the process")
	}
	reused := `{"pid":` + itoa(rec.PID) + `,"startTicks":` + itoa(int(rec.StartTicks)) + `,"bootID":"` + rec.BootID + `"}`
	for name, content := range map[string]string{"reused.pid": reused, "torn.pid": `{"pid":`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- ours.Wait() }()
	ended, err := EndStale(dir)
	if err != nil || len(ended) != 1 || ended[0] != "ours" {
		t.Errorf("ended %v, %v; want ours only", ended, err)
	}
	if err := <-done; err == nil {
		t.Error("our process ended without the kill")
	}
	if _, err := startTicks(foreign.Process.Pid); err != nil {
		t.Errorf("the foreign process is gone: %v", err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*.pid")); len(files) != 0 {
		t.Errorf("pid files are left: %v", files)
	}
	_ = foreign.Process.Kill()
	_ = foreign.Wait() // only to leave nothing behind
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	lock, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	var locked *LockedError
	if _, err := Acquire(dir); !errors.As(err, &locked) || locked.Holder != itoa(os.Getpid()) {
		t.Errorf("a second run must be refused and named the holder: %v", err)
	}
	lock.Release()
	again, err := Acquire(dir)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	again.Release()
}

func TestControl(t *testing.T) {
	s, _, dir := newSupervisor(t)
	// The path is longer than that of a Unix socket may be.
	runDir := filepath.Join(dir, strings.Repeat("d", 120))
	if err := os.Mkdir(runDir, 0o700); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, s, sh("p", "exec sleep 1000"))
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.ServeControl(ctx, runDir) }()
	c := NewClient(runDir)
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if _, err = c.Status(t.Context()); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	if st, err := os.Stat(filepath.Join(runDir, socketName)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the socket must be the user's only: %v, %v", st.Mode(), err)
	}
	for _, step := range []struct {
		verb string
		want State
	}{{"start", StateUp}, {"kill", StateDown}, {"start", StateUp}, {"restart", StateUp}, {"stop", StateDown}} {
		if err := c.Do(t.Context(), step.verb, "p"); err != nil {
			t.Fatalf("%s: %v", step.verb, err)
		}
		all, err := c.Status(t.Context())
		if err != nil || len(all) != 1 || all[0].State != step.want {
			t.Errorf("after %s: %+v, %v", step.verb, all, err)
		}
	}
	if err := c.Do(t.Context(), "stop", "q"); err == nil || !strings.Contains(err.Error(), "no such process") {
		t.Errorf("an unknown name: %v", err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("the end of the control socket: %v", err)
	}
	if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "no playground answers") {
		t.Errorf("after the end: %v", err)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
