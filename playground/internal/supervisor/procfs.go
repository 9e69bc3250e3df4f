package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// startTicks returns the start time of a process in clock ticks since boot. Together with the pid and the boot id it identifies a
// process uniquely.
func startTicks(pid int) (uint64, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	// The command name, in parentheses, may contain blanks and parentheses, so fields are counted from its end.
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, fmt.Errorf("unreadable /proc/%d/stat", pid)
	}
	fields := strings.Fields(string(stat[end+1:]))
	const startTime = 22 - 3 // field 22 of proc(5); the first one left here is field 3
	if len(fields) <= startTime {
		return 0, fmt.Errorf("short /proc/%d/stat", pid)
	}
	if fields[0] == "Z" {
		return 0, os.ErrProcessDone
	}
	return strconv.ParseUint(fields[startTime], 10, 64)
}

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// RSS returns the resident memory of a process in bytes, 0 when it is gone.
func RSS(pid int) int64 {
	statm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// ticksPerSecond is the unit of the times in /proc/PID/stat, which is the same on all architectures that Go supports.
const ticksPerSecond = 100

// CPU returns the processor time of a process since its start, in user and kernel mode; 0 when it is gone.
func CPU(pid int) time.Duration {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	// The name of the program, in parentheses, may contain spaces. The times are the 14th and 15th field, and the state after the name the 3rd.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}
