package main

import (
	"image"
	"image/color"
	"testing"
)

// TestReduce checks that a picture of few colours stays as it is, and that one of many keeps its most frequent colour exactly and every pixel
// nearly.
func TestReduce(t *testing.T) {
	few := image.NewRGBA(image.Rect(0, 0, 16, 16))
	many := image.NewRGBA(image.Rect(0, 0, 64, 64))
	for y := range 64 {
		for x := range 64 {
			c := color.RGBA{uint8(4 * x), uint8(4 * y), 200, 255}
			if y < 16 {
				c = color.RGBA{1, 2, 3, 255}
			}
			many.SetRGBA(x, y, c)
			few.SetRGBA(x%16, y%16, color.RGBA{uint8(x % 16), uint8(y % 16), 0, 255})
		}
	}
	for name, tc := range map[string]struct {
		in    *image.RGBA
		worst int
	}{"few": {few, 0}, "many": {many, 48}} {
		out := reduce(tc.in)
		if len(out.Palette) > maxColours {
			t.Errorf("%s: %d colours", name, len(out.Palette))
		}
		bounds := tc.in.Bounds()
		for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
			for x := bounds.Min.X; x < bounds.Max.X; x++ {
				if d := distance(tc.in.RGBAAt(x, y), rgba(out.At(x, y))); d > tc.worst {
					t.Fatalf("%s: the pixel %d, %d differs by %d", name, x, y, d)
				}
			}
		}
		if name == "many" && rgba(out.At(0, 0)) != (color.RGBA{1, 2, 3, 255}) {
			t.Errorf("the most frequent colour is %v", out.At(0, 0))
		}
	}
}
