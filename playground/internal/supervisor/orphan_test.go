package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestMain runs this test binary as a supervisor that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("ACP_TEST_SUPERVISE"); dir != "" {
		s := New(Config{RunDir: dir, LogDir: dir})
		if err := s.Add(sh("child", "exec sleep 1000")); err != nil {
			os.Exit(1)
		}
		if err := s.Start("child"); err != nil {
			os.Exit(1)
		}
		fmt.Println(s.Status()[0].PID)
		select {}
	}
	os.Exit(m.Run())
}

func TestChildrenDieWithAKilledSupervisor(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "ACP_TEST_SUPERVISE="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatalf("read the child's pid: %v", err)
	}
	rec, err := recordOf(pid)
	if err != nil {
		t.Fatalf("the child is not there: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if err := waitGone(rec, 20*time.Second); err != nil {
		t.Errorf("a child outlived its supervisor: %v", err)
	}
}
