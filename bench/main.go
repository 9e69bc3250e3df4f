package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	seed := flag.Uint64("seed", 1, "of the grants and the questions")
	peersToo := flag.Bool("peers", true, "measure the other engines, too")
	flag.Parse()
	fmt.Fprintf(os.Stderr, "bench: seed %d\n", *seed)
	if err := run(*seed, *peersToo); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
