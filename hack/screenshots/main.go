// Command screenshots copies the screenshots of the documents from one folder to another, with at most 256 colours each. This makes the
// files about a third as large; text stays exact, because the most frequent colours are kept.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
)

// maxColours is the number of colours that a PNG with one byte for each pixel has.
const maxColours = 256

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: screenshots FROM TO"))
	}
	names, err := filepath.Glob(filepath.Join(os.Args[1], "*.png"))
	if err != nil {
		fail(err)
	}
	if len(names) == 0 {
		fail(fmt.Errorf("%s has no pictures", os.Args[1]))
	}
	for _, name := range names {
		if err := convert(name, filepath.Join(os.Args[2], filepath.Base(name))); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// convert writes the picture of one file to another one.
func convert(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("read %s: %w", from, err)
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, reduce(picture)); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	return os.WriteFile(to, out.Bytes(), 0o644) //nolint:gosec // a document, which everybody may read
}

// reduce returns a picture with at most maxColours colours.
func reduce(picture image.Image) *image.Paletted {
	bounds := picture.Bounds()
	counts := map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[rgba(picture.At(x, y))]++
		}
	}
	palette := choose(counts)
	indexes := map[color.RGBA]uint8{}
	for c := range counts {
		indexes[c] = uint8(palette.Index(c)) //nolint:gosec // a palette has at most maxColours entries
	}
	out := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			out.SetColorIndex(x, y, indexes[rgba(picture.At(x, y))])
		}
	}
	return out
}

func rgba(c color.Color) color.RGBA {
	r, g, b, a := c.RGBA()
	return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), uint8(a >> 8)} //nolint:gosec // 16 bits shifted by 8
}

// choose returns the colours of a picture, the most frequent first. If there are more than maxColours, those that are close to a more frequent
// one are left out; how close is the smallest distance for which the others fit.
func choose(counts map[color.RGBA]int) color.Palette {
	all := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B), cmp.Compare(a.A, b.A))
	})
	for limit := 0; ; limit++ {
		var chosen []color.RGBA
		for _, c := range all {
			if !slices.ContainsFunc(chosen, func(d color.RGBA) bool { return distance(c, d) < limit }) {
				chosen = append(chosen, c)
			}
			if len(chosen) > maxColours {
				break
			}
		}
		if len(chosen) <= maxColours {
			palette := color.Palette{}
			for _, c := range chosen {
				palette = append(palette, c)
			}
			return palette
		}
	}
}

// distance returns the sum of the differences of two colours.
func distance(a, b color.RGBA) int {
	sum := 0
	for _, d := range []int{int(a.R) - int(b.R), int(a.G) - int(b.G), int(a.B) - int(b.B), int(a.A) - int(b.A)} {
		sum += max(d, -d)
	}
	return sum
}
