// SPDX-License-Identifier: Apache-2.0

// Package chart draws lines over axes into SVG and PNG files. It knows nothing of
// what the numbers mean, and all of how they are told apart on a screen, on paper,
// and by the colour-blind. What it writes depends on its input alone: a picture that
// is kept under version control changes only with its data.
package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"unicode"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// ErrNoData says that no line has a point that could be drawn.
var ErrNoData = errors.New("there is nothing to draw")

// Point is a place in the units of the axes. One that is NaN or infinite is left out,
// and so is what a logarithmic axis has no place for.
type Point struct{ X, Y float64 }

// Line connects points, in their order.
type Line struct {
	// Name is the line's in the legend. Lines of one name, in several plots, are drawn
	// alike.
	Name   string
	Points []Point
	// Dashed tells a line from another of its group.
	Dashed bool
	// Group says which lines have one colour. Where no line of a picture has a group
	// other than 0, each name has a colour of its own.
	Group int
}

// Plot is one panel of a picture.
type Plot struct {
	// Title is above the panel; X and Y name the axes, with their units. All may be "".
	Title, X, Y string
	// LogX and LogY make an axis logarithmic. A linear one begins at 0 if its values
	// do not lie below.
	LogX, LogY bool
	// XTicks are the places on the X axis that bear a number; nil means round ones.
	XTicks []float64
	Lines  []Line
}

// The formats that Write knows.
const (
	svg = "svg"
	png = "png"
)

// FormatOf returns the format of a file by how its name ends. The error says which
// there are.
func FormatOf(path string) (string, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".svg", ".png":
		return ext[1:], nil
	default:
		return "", fmt.Errorf("%q: a plot is written as SVG or PNG; end its name in .svg or .png", path)
	}
}

// pngDPI makes a PNG twice as wide as an SVG, whose point is 4/3 of a pixel: sharp on
// screens of high resolution.
const pngDPI = 192

// Write draws plots beside each other, three in a row at most, below a title, and writes
// the picture to w in a format of FormatOf. Two plots are 1000 pixels wide as SVG.
// Lines without a point that can be drawn are left out, and plots without such lines;
// if nothing is left it is ErrNoData. Other errors are those of w.
func Write(w io.Writer, format, title string, plots ...Plot) error {
	if format != svg && format != png {
		return fmt.Errorf("plot format %q is neither svg nor png", format)
	}
	p := newPicture(title, plots)
	if len(p.plots) == 0 {
		return ErrNoData
	}
	width, height := p.size()
	if format == png {
		c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pngDPI))
		p.draw(draw.New(c))
		_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
		return err
	}
	c := vgsvg.New(width, height)
	p.draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	_, err := w.Write(withFallbackFonts(b.Bytes()))
	return err
}

// withFallbackFonts names fonts of the same widths for those who do not have ours.
// Putting ours into each file would make it some hundred kilobytes larger.
func withFallbackFonts(file []byte) []byte {
	return bytes.ReplaceAll(file, []byte("font-family:Liberation Sans;"),
		[]byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
}

// picture is what is drawn: plots with nothing in them that cannot be.
type picture struct {
	title string
	plots []Plot
	// legends has one entry for each plot, or one for all of them.
	legends []legend
	shared  bool
}

func newPicture(title string, plots []Plot) *picture {
	p := &picture{title: printable(title)}
	for _, plot := range plots {
		plot.Title, plot.X, plot.Y = printable(plot.Title), printable(plot.X), printable(plot.Y)
		var lines []Line
		for _, l := range plot.Lines {
			l.Name = printable(l.Name)
			if l.Points = plot.drawable(l.Points); len(l.Points) > 0 {
				lines = append(lines, l)
			}
		}
		if plot.Lines = lines; len(lines) > 0 {
			p.plots = append(p.plots, plot)
		}
	}
	p.chooseGroups()
	p.chooseLegends()
	return p
}

// chooseGroups gives each name a group if the caller has given none.
func (p *picture) chooseGroups() {
	groups := make(map[string]int)
	for _, plot := range p.plots {
		for _, l := range plot.Lines {
			if l.Group != 0 {
				return
			}
			if _, known := groups[l.Name]; !known {
				groups[l.Name] = len(groups)
			}
		}
	}
	for _, plot := range p.plots {
		for i := range plot.Lines {
			plot.Lines[i].Group = groups[plot.Lines[i].Name]
		}
	}
}

// huge is beyond all that is measured, and small enough for differences of such numbers
// to be finite.
const huge = 1e100

// drawable returns the points that have a place in the plot.
func (p *Plot) drawable(points []Point) []Point {
	ok := func(v float64, log bool) bool {
		return math.Abs(v) <= huge && (!log || v >= 1/huge)
	}
	var out []Point
	for _, pt := range points {
		if ok(pt.X, p.LogX) && ok(pt.Y, p.LogY) {
			out = append(out, pt)
		}
	}
	return out
}

// printable keeps control characters, which XML cannot express, out of a text.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// The measures of a picture.
const (
	panelHeight = vg.Length(255) // with a title
	titleHeight = vg.Length(27)
	rowGap      = vg.Length(12)
	margin      = vg.Length(9)
	maxColumns  = 3
)

// panelWidth is that of one panel where there are so many in a row.
var panelWidth = [maxColumns + 1]vg.Length{1: 480, 2: 375, 3: 320}

func (p *picture) columns() int { return min(len(p.plots), maxColumns) }
func (p *picture) rows() int    { return (len(p.plots)-1)/p.columns() + 1 }

// row returns the numbers of the plots in a row.
func (p *picture) row(r int) (from, to int) {
	return r * p.columns(), min((r+1)*p.columns(), len(p.plots))
}

// size returns the picture's width and height.
func (p *picture) size() (width, height vg.Length) {
	n := p.columns()
	width = vg.Length(n) * panelWidth[n]
	height = 2*margin + vg.Length(p.rows())*(panelHeight+rowGap) - rowGap
	if p.title != "" {
		height += titleHeight
	}
	if p.shared {
		return width, height + p.legends[0].height(width-2*margin)
	}
	for r := range p.rows() {
		height += p.legendHeight(r)
	}
	return width, height
}

// legendHeight is that of the highest legend below the plots of a row.
func (p *picture) legendHeight(r int) vg.Length {
	height := vg.Length(0)
	for i, to := p.row(r); i < to; i++ {
		height = max(height, p.legends[i].height(p.legendWidth()))
	}
	return height
}

// legendWidth is that of the legend of one plot.
func (p *picture) legendWidth() vg.Length { return panelWidth[p.columns()] - 2*margin }
