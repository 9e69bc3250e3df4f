package cli

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// endGrace is how long a command has, after a signal, to end by itself and to report what it was doing.
const endGrace = 250 * time.Millisecond

// exitSignal is added to the number of the signal that ended a command, as shells do.
const exitSignal = 128

// RunUntil runs the command line until it ends or a signal arrives, and returns the exit code. A signal cancels the command's
// context; a command that does not end soon after that, because it computes or waits for input, is abandoned, so the caller has
// to exit the process.
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
