package cli

import (
	"slices"
	"strings"
)

// around is the number of unchanged lines that are shown next to changed ones.
const around = 3

// lineDiff shows the changes of a text: changed lines with + or -, lines around them with a space, and "..." between.
func lineDiff(before, after string) string {
	type line struct {
		mark byte
		text string
	}
	var all []line
	a, b := lines(before), lines(after)
	common := commonLines(a, b)
	i, j := 0, 0
	for _, pair := range append(common, [2]int{len(a), len(b)}) {
		for ; i < pair[0]; i++ {
			all = append(all, line{'-', a[i]})
		}
		for ; j < pair[1]; j++ {
			all = append(all, line{'+', b[j]})
		}
		if i < len(a) {
			all = append(all, line{' ', a[i]})
			i, j = i+1, j+1
		}
	}
	var out strings.Builder
	skipped := false
	for n, l := range all {
		from, to := max(0, n-around), min(len(all), n+around+1)
		if !slices.ContainsFunc(all[from:to], func(l line) bool { return l.mark != ' ' }) {
			if !skipped {
				out.WriteString("  ...\n")
			}
			skipped = true
			continue
		}
		skipped = false
		out.WriteByte(l.mark)
		out.WriteString(" " + l.text + "\n")
	}
	return out.String()
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// maxCells bounds the table of commonLines. Longer texts are shown as replaced between their common beginning and end.
const maxCells = 16 << 20

// commonLines returns the pairs of lines of a longest common subsequence.
func commonLines(a, b []string) [][2]int {
	var head, tail [][2]int
	low, highA, highB := 0, len(a), len(b)
	for low < highA && low < highB && a[low] == b[low] {
		head = append(head, [2]int{low, low})
		low++
	}
	for highA > low && highB > low && a[highA-1] == b[highB-1] {
		highA, highB = highA-1, highB-1
		tail = append(tail, [2]int{highA, highB})
	}
	slices.Reverse(tail)
	n, m := highA-low, highB-low
	if n == 0 || m == 0 || n*m > maxCells {
		return append(head, tail...)
	}
	length := make([][]int32, n+1)
	for i := range length {
		length[i] = make([]int32, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if a[low+i] == b[low+j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case a[low+i] == b[low+j]:
			head = append(head, [2]int{low + i, low + j})
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return append(head, tail...)
}
