// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"image/color"
	"math"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// colours are those of Okabe and Ito ("Color Universal Design", 2008), which people
// with any of the common kinds of colour blindness can tell apart. Their yellow is
// left out: it is hard to see on white.
var colours = [...]color.RGBA{
	{0x00, 0x72, 0xB2, 0xFF}, // blue
	{0xD5, 0x5E, 0x00, 0xFF}, // vermilion
	{0x00, 0x9E, 0x73, 0xFF}, // bluish green
	{0xCC, 0x79, 0xA7, 0xFF}, // reddish purple
	{0xE6, 0x9F, 0x00, 0xFF}, // orange
	{0x56, 0xB4, 0xE9, 0xFF}, // sky blue
	{0x00, 0x00, 0x00, 0xFF},
}

var (
	black = color.Gray{0x22}
	grey  = color.Gray{0x70}
	pale  = color.Gray{0xE2}
)

const (
	lineWidth  = vg.Length(1.6)
	markerSize = vg.Length(2.9)
	// fewPoints is how many points of a line are marked; more would hide it.
	fewPoints = 20
)

// marked says that the points of a line are.
func (l Line) marked() bool { return len(l.Points) <= fewPoints }

// style is how a line looks.
type style struct {
	group  int
	dashed bool
	// variant tells lines apart that have the rest in common.
	variant int
}

func (s style) line() draw.LineStyle {
	n := len(colours)
	ls := draw.LineStyle{Color: colours[((s.group%n)+n)%n], Width: lineWidth}
	if s.dashed {
		ls.Dashes = []vg.Length{5, 3}
	}
	return ls
}

// marker is full for solid lines and hollow for dashed ones; its shape tells groups
// apart for those who see no colours.
func (s style) marker() draw.GlyphStyle {
	n := len(shapes)
	return draw.GlyphStyle{
		Color:  s.line().Color,
		Radius: markerSize,
		Shape:  marker{corners: shapes[(((s.group+s.variant)%n)+n)%n], hollow: s.dashed},
	}
}

// shapes are the corners of markers, for a radius of 1; a circle has none.
var shapes = [...][]vg.Point{
	nil,
	{{X: -.9, Y: -.9}, {X: .9, Y: -.9}, {X: .9, Y: .9}, {X: -.9, Y: .9}},
	{{X: -1.1, Y: -.8}, {X: 1.1, Y: -.8}, {X: 0, Y: 1.2}},
	{{X: 0, Y: -1.3}, {X: 1.3, Y: 0}, {X: 0, Y: 1.3}, {X: -1.3, Y: 0}},
	{{X: -1.1, Y: .8}, {X: 0, Y: -1.2}, {X: 1.1, Y: .8}},
}

// marker draws a shape, filled with white if hollow, so that the line does not show
// through.
type marker struct {
	corners []vg.Point
	hollow  bool
}

// DrawGlyph implements draw.GlyphDrawer.
func (m marker) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, pt vg.Point) {
	var path vg.Path
	if m.corners == nil {
		path.Move(vg.Point{X: pt.X + sty.Radius, Y: pt.Y})
		path.Arc(pt, sty.Radius, 0, 2*math.Pi)
	}
	for i, corner := range m.corners {
		at := pt.Add(corner.Scale(sty.Radius))
		if i == 0 {
			path.Move(at)
		} else {
			path.Line(at)
		}
	}
	path.Close()
	if !m.hollow {
		c.SetColor(sty.Color)
		c.Fill(path)
		return
	}
	c.SetColor(color.White)
	c.Fill(path)
	c.SetLineStyle(draw.LineStyle{Color: sty.Color, Width: 1.2})
	c.Stroke(path)
}

// textStyle is of a text of so many points, centred on what it belongs to.
func textStyle(size font.Length, bold bool, c color.Color) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = xfont.WeightBold
	}
	return text.Style{
		Color:   c,
		Font:    f,
		XAlign:  text.XCenter,
		YAlign:  text.YBottom,
		Handler: text.Plain{Fonts: font.DefaultCache},
	}
}
