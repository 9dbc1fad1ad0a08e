// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	imagepng "image/png"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// depths makes a line over the depths 1, 2, 4 and so on.
func depths(name string, group int, dashed bool, ys ...float64) Line {
	l := Line{Name: name, Group: group, Dashed: dashed}
	for i, y := range ys {
		l.Points = append(l.Points, Point{float64(int(1) << i), y})
	}
	return l
}

func latency() Plot {
	return Plot{Title: "Latency", X: "queue depth", Y: "µs", LogX: true, LogY: true,
		XTicks: []float64{1, 2, 4, 8, 16, 32, 64, 128},
		Lines: []Line{
			depths("stripe & co, polled", 1, false, 66, 70, 90, 150, 300, 600, 1100, 2300),
			depths("stripe & co, unpolled", 1, true, 152, 160, 190, 260, 420, 800, 1500, 2900),
			depths("rival <1>", 2, false, 70, 77, 99, 170, 320, 640, 1200, 2500),
		}}
}

func iops() Plot {
	p := latency()
	p.Title, p.Y, p.LogY = "Rate", "IOPS", false
	for i, l := range p.Lines {
		p.Lines[i].Points = nil
		for _, pt := range l.Points {
			p.Lines[i].Points = append(p.Lines[i].Points, Point{pt.X, pt.X * 1e6 / pt.Y})
		}
	}
	return p
}

func render(t *testing.T, format, title string, plots ...Plot) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, format, title, plots...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// drawing is what a SVG file holds.
type drawing struct {
	texts []string
	// curves are the paths of a line's width, by colour, each as often as drawn.
	curves map[string]int
	dashed int
}

// parse reads a SVG file strictly.
func parse(t *testing.T, file []byte) drawing {
	t.Helper()
	d := drawing{curves: make(map[string]int)}
	colour := regexp.MustCompile(`stroke:(#[0-9A-F]{6})`)
	width := fmt.Sprintf("stroke-width:%v", float64(lineWidth))
	dec := xml.NewDecoder(bytes.NewReader(file))
	inText := false
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return d
		}
		if err != nil {
			t.Fatalf("the SVG is not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
			if token.Name.Local != "path" {
				continue
			}
			var path, style string
			for _, a := range token.Attr {
				switch a.Name.Local {
				case "d":
					path = a.Value
				case "style":
					style = a.Value
				}
			}
			if strings.Contains(path, "NaN") || strings.Contains(path, "Inf") {
				t.Errorf("a path has %.60s", path)
			}
			// Those of the legend have one segment.
			if strings.Contains(style, width) && strings.Count(path, "L") > 1 {
				d.curves[colour.FindStringSubmatch(style)[1]]++
				if strings.Contains(style, "stroke-dasharray") {
					d.dashed++
				}
			}
		case xml.CharData:
			if inText {
				d.texts = append(d.texts, string(token))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

func (d drawing) count(text string) int {
	n := 0
	for _, s := range d.texts {
		if s == text {
			n++
		}
	}
	return n
}

func TestFormatOf(t *testing.T) {
	for path, want := range map[string]string{"a.svg": svg, "b/c.d.PNG": png, "x.Svg": svg} {
		if got, err := FormatOf(path); got != want || err != nil {
			t.Errorf("FormatOf(%q) = %q, %v", path, got, err)
		}
	}
	for _, path := range []string{"", "svg", "a.jpg", "a.svg.gz", "a.svg/b"} {
		if _, err := FormatOf(path); err == nil || !strings.Contains(err.Error(), ".svg or .png") {
			t.Errorf("FormatOf(%q): %v", path, err)
		}
	}
	if err := Write(io.Discard, "pdf", "", latency()); err == nil {
		t.Error("a PDF was written")
	}
}

// Every line is there, in the colour of its group, and every text; plots of the same
// lines share one legend.
func TestSVGHasEverything(t *testing.T) {
	d := parse(t, render(t, svg, "Two & more", latency(), iops()))
	for text, n := range map[string]int{
		"Two & more": 1, "Latency": 1, "Rate": 1, "queue depth": 2, "µs": 1, "IOPS": 1,
		"stripe & co, polled": 1, "stripe & co, unpolled": 1, "rival <1>": 1,
		"1": 2, "2": 2, "16": 2, "128": 2, "50k": 1, "2k": 1,
	} {
		if d.count(text) != n {
			t.Errorf("%q is there %d times, not %d; there are %q", text, d.count(text), n, d.texts)
		}
	}
	if len(d.curves) != 2 || d.curves["#D55E00"] != 4 || d.curves["#009E73"] != 2 || d.dashed != 2 {
		t.Errorf("curves %v, %d of them dashed", d.curves, d.dashed)
	}
}

// Names choose the colours where there are no groups, the same in all plots.
func TestColoursWithoutGroups(t *testing.T) {
	a, b := latency(), iops()
	for i := range a.Lines {
		a.Lines[i].Group, b.Lines[i].Group = 0, 0
	}
	b.Lines = b.Lines[1:]
	d := parse(t, render(t, svg, "", a, b))
	if len(d.curves) != 3 || d.curves["#0072B2"] != 1 || d.curves["#D55E00"] != 2 || d.curves["#009E73"] != 2 {
		t.Errorf("curves %v", d.curves)
	}
	if n := d.count("rival <1>"); n != 1 {
		t.Errorf("%d legends", n)
	}
}

// Lines that look alike and have different names are not explained by one legend.
func TestOwnLegends(t *testing.T) {
	a, b := latency(), iops()
	b.Lines[2].Name = "another rival"
	d := parse(t, render(t, svg, "", a, b))
	if d.count("stripe & co, polled") != 2 || d.count("rival <1>") != 1 || d.count("another rival") != 1 {
		t.Errorf("texts %q", d.texts)
	}
}

// Markers are circles, squares and so on: filled paths in the line's colour.
func TestMarkersAreForFewPoints(t *testing.T) {
	count := func(points int) int {
		l := Line{Name: "l"}
		for i := range points {
			l.Points = append(l.Points, Point{float64(i), float64(i % 7)})
		}
		file := render(t, svg, "", Plot{Lines: []Line{l}})
		return strings.Count(string(file), "fill:#0072B2")
	}
	// One more is in the legend.
	if few, many := count(fewPoints), count(fewPoints+1); few != fewPoints+1 || many != 0 {
		t.Errorf("%d markers for %d points, %d for %d", few, fewPoints, many, fewPoints+1)
	}
}

func TestPNG(t *testing.T) {
	for _, test := range []struct{ plots, width, rows int }{{1, 1280, 1}, {2, 2000, 1}, {4, 2560, 2}} {
		plots := slices.Repeat([]Plot{iops()}, test.plots)
		decoded, err := imagepng.Decode(bytes.NewReader(render(t, png, "title", plots...)))
		if err != nil {
			t.Fatal(err)
		}
		img, ok := decoded.(*image.RGBA)
		if !ok {
			t.Fatalf("the picture is %T", decoded)
		}
		b := img.Bounds()
		if low := 700 * test.rows; b.Dx() != test.width || b.Dy() < low || b.Dy() > low*13/10 {
			t.Errorf("%d plots are %v", test.plots, b)
		}
		if img.RGBAAt(0, 0) != (color.RGBA{255, 255, 255, 255}) {
			t.Error("the background is not white")
		}
		// A picture of white alone would pass all that.
		for _, c := range colours[1:3] {
			if !bytes.Contains(img.Pix, []byte{c.R, c.G, c.B, c.A, c.R, c.G, c.B, c.A}) {
				t.Errorf("a group's colour %v is nowhere", c)
			}
		}
	}
}

func TestDeterministic(t *testing.T) {
	for _, format := range []string{svg, png} {
		first := render(t, format, "title", latency(), iops())
		// More often than a map's order is the same by chance.
		repeats := map[string]int{svg: 10, png: 1}[format]
		for range repeats {
			if !bytes.Equal(first, render(t, format, "title", latency(), iops())) {
				t.Fatalf("the same plots give different %s files", format)
			}
		}
		other := latency()
		other.Lines[0].Points[3].Y *= 1.5
		if bytes.Equal(first, render(t, format, "title", other, iops())) {
			t.Errorf("%s does not show the data", format)
		}
	}
}

// The caller's plots are not written to.
func TestInputIsKept(t *testing.T) {
	p := latency()
	p.Lines[0].Name = "a\nb"
	p.Lines[1].Points[0].Y = 0
	for i := range p.Lines {
		p.Lines[i].Group = 0
	}
	render(t, svg, "", p)
	if p.Lines[0].Name != "a\nb" || len(p.Lines[1].Points) != 8 || p.Lines[2].Group != 0 {
		t.Errorf("the plot became %+v", p)
	}
}

func TestNothingToDraw(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	bad := []Point{{nan, 1}, {1, nan}, {inf, 1}, {1, -inf}, {1e300, 1}}
	for name, plots := range map[string][]Plot{
		"no plots":       nil,
		"no lines":       {{Title: "a"}},
		"no points":      {{Lines: []Line{{Name: "a"}, {Name: "b"}}}},
		"no good points": {{Lines: []Line{{Points: bad}}}},
		"log of 0":       {{LogY: true, Lines: []Line{{Points: []Point{{1, 0}, {2, -1}}}}}},
		"log of x":       {{LogX: true, Lines: []Line{{Points: []Point{{0, 1}, {-2, 1}}}}}},
	} {
		var b bytes.Buffer
		if err := Write(&b, svg, "t", plots...); !errors.Is(err, ErrNoData) || b.Len() != 0 {
			t.Errorf("%s: %v after %d bytes", name, err, b.Len())
		}
	}
}

// Whatever the numbers and texts, there is a picture of what can be drawn.
func TestDegenerate(t *testing.T) {
	long := strings.Repeat("a very long name of a line ", 20)
	many := Plot{Title: long}
	for i := range 40 {
		many.Lines = append(many.Lines, Line{Name: fmt.Sprint(long, i), Group: i - 20, Points: []Point{{1, float64(i)}, {2, 3}}})
	}
	line := func(points ...Point) Plot { return Plot{Lines: []Line{{Name: "l", Points: points}}} }
	with := func(p Plot, f func(*Plot)) Plot { f(&p); return p }
	log := func(p *Plot) { p.LogX, p.LogY = true, true }
	for name, p := range map[string]Plot{
		"one point":        line(Point{3, 4}),
		"one point, log":   with(line(Point{3, 4}), log),
		"origin":           line(Point{}),
		"flat":             line(Point{1, 5}, Point{2, 5}),
		"upright":          with(line(Point{1, 5}, Point{1, 500}), log),
		"negative":         line(Point{-7, -5}, Point{-3, -5}),
		"zeros among":      with(line(Point{0, 1}, Point{1, 0}, Point{2, 2}, Point{4, math.NaN()}, Point{5, 5}), log),
		"huge":             line(Point{-1e99, 1e99}, Point{1e99, -1e99}),
		"huge, log":        with(line(Point{1e-99, 1e99}, Point{1e99, 1e-99}), log),
		"tiny":             line(Point{5e-324, 5e-324}, Point{1e-320, 1e-300}),
		"close":            line(Point{1e15, 1}, Point{1e15 + 1, 1 + 1e-15}),
		"close, negative":  line(Point{-1e15, -1 - 1e-15}, Point{-1e15 - 1, -1}),
		"close, log":       with(line(Point{1e15, 1}, Point{1e15 + 1, 1 + 1e-15}), log),
		"ticks outside":    with(line(Point{3, 4}), func(p *Plot) { p.XTicks = []float64{-1, 100, math.NaN(), math.Inf(1)} }),
		"no ticks":         with(line(Point{3, 4}), func(p *Plot) { p.XTicks = []float64{} }),
		"no name":          {Lines: []Line{{Points: []Point{{1, 1}, {2, 2}}}}},
		"strange texts":    {Title: "\x00\x1b[31m\xff\uFFFE", X: "日本", Y: "a\nb", Lines: []Line{{Name: "]]>\x01", Points: []Point{{1, 1}}}}},
		"long, and many":   many,
		"negative of log2": with(line(Point{1, 1}, Point{1e5, 1e9}), log),
	} {
		t.Run(name, func(t *testing.T) {
			parse(t, render(t, svg, name, p))
			// What differs by format is the texts; a PNG takes long to draw.
			if !slices.Contains([]string{"strange texts", "huge, log", "long, and many"}, name) {
				return
			}
			if _, err := imagepng.Decode(bytes.NewReader(render(t, png, "", p))); err != nil {
				t.Error(err)
			}
		})
	}
}

// A plot without data leaves no hole.
func TestEmptyPlotIsLeftOut(t *testing.T) {
	if !bytes.Equal(render(t, svg, "t", latency()), render(t, svg, "t", Plot{Title: "empty"}, latency())) {
		t.Error("an empty plot changes the picture")
	}
}

type brokenWriter struct{}

var errBroken = errors.New("disk full")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriterFails(t *testing.T) {
	for _, format := range []string{svg, png} {
		if err := Write(brokenWriter{}, format, "", latency()); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", format, err)
		}
	}
}
