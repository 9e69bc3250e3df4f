package cli

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// endGrace is the time after a signal in which a command may end and report its progress.
const endGrace = 250 * time.Millisecond

// exitSignal is added to the number of the signal that ended a command, as in shells.
const exitSignal = 128

// RunUntil runs the command line until it ends or a signal arrives, and returns the exit code. A signal cancels the
// command's context. A command that does not end soon after that, because it computes or waits for input, is abandoned;
// the caller must then exit the process.
func RunUntil(signals <-chan os.Signal, args []string, s Streams) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, args, s) }()
	select {
	case code := <-ended:
		return code
	case sig := <-signals:
		cancel()
		select {
		case <-ended:
		case <-time.After(endGrace):
		}
		fmt.Fprintf(s.Err, "error: ended by the signal %q; what was printed until then may be incomplete\n", sig)
		if number, ok := sig.(syscall.Signal); ok {
			return exitSignal + int(number)
		}
		return ExitInvalid
	}
}
