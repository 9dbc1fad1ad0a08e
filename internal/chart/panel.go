// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// draw draws the picture on a canvas of its size.
func (p *picture) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, 0, 0, margin, -margin)
	if p.title != "" {
		sty := textStyle(14, true, black)
		sty.YAlign = text.YTop
		width := c.Max.X - c.Min.X - 2*margin
		c.FillText(sty, vg.Point{X: c.Center().X, Y: c.Max.Y}, shorten(sty, p.title, width))
		c.Max.Y -= titleHeight
	}
	columns := p.columns()
	width := panelWidth[columns]
	for r := range p.rows() {
		from, to := p.row(r)
		band := c
		band.Min.Y = band.Max.Y - panelHeight
		// Plots that are fewer than the row has room for are in its middle.
		band.Min.X += vg.Length(columns-(to-from)) * width / 2
		band.Max.X = band.Min.X + vg.Length(to-from)*width
		p.drawRow(band, from, to)
		c.Max.Y -= panelHeight
		if !p.shared {
			for i := from; i < to; i++ {
				x := band.Min.X + vg.Length(i-from)*width
				area := c
				area.Min.X, area.Max.X = x+margin, x+width-margin
				p.legends[i].draw(area)
			}
			c.Max.Y -= p.legendHeight(r)
		}
		c.Max.Y -= rowGap
	}
	if p.shared {
		c.Max.Y += rowGap
		p.legends[0].draw(draw.Crop(c, margin, -margin, 0, 0))
	}
}

const panelTitleHeight = vg.Length(20)

// drawRow draws plots beside each other, with axes of the same length.
func (p *picture) drawRow(c draw.Canvas, from, to int) {
	var panels []*plot.Plot
	titled := false
	for i := from; i < to; i++ {
		panels = append(panels, p.plots[i].panel(p.legendOf(i)))
		titled = titled || p.plots[i].Title != ""
	}
	top := c.Max.Y
	if titled {
		c.Max.Y -= panelTitleHeight
	}
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: 2 * margin, PadLeft: margin, PadRight: margin}
	for i, area := range plot.Align([][]*plot.Plot{panels}, tiles, c)[0] {
		panels[i].Draw(area)
		// Not by gonum, which would put it higher or lower, as the labels below are.
		sty := textStyle(11, true, black)
		sty.YAlign = text.YTop
		data := panels[i].DataCanvas(area)
		title := shorten(sty, p.plots[from+i].Title, panelWidth[p.columns()])
		c.FillText(sty, vg.Point{X: data.Center().X, Y: top}, title)
	}
}

// panel makes gonum's plot of ours.
func (p *Plot) panel(l *legend) *plot.Plot {
	out := plot.New()
	out.BackgroundColor = nil

	var xs, ys []float64
	for _, line := range p.Lines {
		for _, pt := range line.Points {
			xs, ys = append(xs, pt.X), append(ys, pt.Y)
		}
	}
	x, y := newAxis(xs, p.LogX, p.XTicks), newAxis(ys, p.LogY, nil)
	x.apply(&out.X, p.X)
	y.apply(&out.Y, p.Y)
	out.X.Tick.Label.YAlign = text.YTop
	out.Y.Tick.Label.XAlign, out.Y.Tick.Label.YAlign = text.XRight, text.YCenter

	out.Add(grid{x, y})
	for _, line := range p.Lines {
		out.Add(curve{line.Points, line.marked(), l.style(line)})
	}
	return out
}

// apply sets up gonum's axis.
func (a axis) apply(to *plot.Axis, label string) {
	to.Min, to.Max = a.min, a.max
	to.Scale = a.scale()
	to.Padding = 0
	to.LineStyle = draw.LineStyle{Color: grey, Width: .7}
	to.Label.Text = label
	to.Label.TextStyle = textStyle(10, false, black)
	to.Label.Padding = 4
	to.Tick.Marker = a.ticks
	to.Tick.Label = textStyle(9.5, false, black)
	to.Tick.LineStyle = to.LineStyle
	to.Tick.Length = 4
}

// grid draws lines at the numbers of the axes, but not over the axes themselves.
type grid struct{ x, y axis }

// Plot implements plot.Plotter.
func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	thin := draw.LineStyle{Color: pale, Width: .7}
	for _, t := range g.x.ticks {
		if !t.IsMinor() && t.Value > g.x.min {
			c.StrokeLine2(thin, toX(t.Value), c.Min.Y, toX(t.Value), c.Max.Y)
		}
	}
	for _, t := range g.y.ticks {
		if !t.IsMinor() && t.Value > g.y.min {
			c.StrokeLine2(thin, c.Min.X, toY(t.Value), c.Max.X, toY(t.Value))
		}
	}
}

// curve draws one line, and its points if they are few.
type curve struct {
	points []Point
	marked bool
	style
}

// Plot implements plot.Plotter.
func (l curve) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	at := make([]vg.Point, len(l.points))
	for i, pt := range l.points {
		at[i] = vg.Point{X: toX(pt.X), Y: toY(pt.Y)}
	}
	if len(at) > 1 {
		c.StrokeLines(l.line(), at)
	}
	if l.marked {
		for _, pt := range at {
			c.DrawGlyphNoClip(l.marker(), pt)
		}
	}
}
