// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"sort"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// legend lies below the plots, where it hides no data, in as many rows as it needs.
type legend []item

// item is one line of the legend.
type item struct {
	name string
	style
	// marked says that some line of it has markers.
	marked bool
}

const (
	swatch    = vg.Length(26)
	swatchGap = vg.Length(5)
	itemGap   = vg.Length(18)
	itemRow   = vg.Length(15)
	legendGap = vg.Length(6) // above it
)

func legendStyle() text.Style {
	s := textStyle(10, false, black)
	s.XAlign, s.YAlign = text.XLeft, text.YCenter
	return s
}

// style returns how a line looks, entering it into the legend if it is not there yet.
func (l *legend) style(line Line) style {
	s := style{group: line.Group, dashed: line.Dashed}
	for i := range *l {
		it := &(*l)[i]
		if it.group != s.group || it.dashed != s.dashed {
			continue
		}
		if it.name == line.Name {
			it.marked = it.marked || line.marked()
			return it.style
		}
		s.variant++
	}
	*l = append(*l, item{line.Name, s, line.marked()})
	return s
}

// chooseLegends makes one legend for all plots, unless lines of two plots that look
// alike have different names, or the plots have nothing in common.
func (p *picture) chooseLegends() {
	var all legend
	common := 0
	for _, plot := range p.plots {
		var own legend
		before := len(all)
		for _, line := range plot.Lines {
			own.style(line)
			all.style(line)
		}
		if len(all) < before+len(own) {
			common++
		}
		p.legends = append(p.legends, own)
	}
	alike := slices.ContainsFunc(all, func(it item) bool { return it.variant > 0 })
	if len(p.plots) > 1 && common == len(p.plots)-1 && !alike {
		p.legends, p.shared = []legend{all}, true
	}
}

// legendOf returns the legend of a plot.
func (p *picture) legendOf(i int) *legend {
	if p.shared {
		return &p.legends[0]
	}
	return &p.legends[i]
}

// nameless says that there is nothing to tell: one line that has no name.
func (l legend) nameless() bool {
	return !slices.ContainsFunc(l, func(it item) bool { return it.name != "" })
}

// rows breaks a legend into rows no wider than width, and returns each with its width.
func (l legend) rows(width vg.Length) (rows []legend, widths []vg.Length) {
	if l.nameless() {
		return nil, nil
	}
	sty := legendStyle()
	for _, it := range l {
		it.name = shorten(sty, it.name, width-swatch-swatchGap)
		w := swatch + swatchGap + sty.Width(it.name)
		last := len(rows) - 1
		if last >= 0 && widths[last]+itemGap+w <= width {
			rows[last] = append(rows[last], it)
			widths[last] += itemGap + w
			continue
		}
		rows, widths = append(rows, legend{it}), append(widths, w)
	}
	return rows, widths
}

// shorten cuts a text that is wider than width.
func shorten(sty text.Style, s string, width vg.Length) string {
	if sty.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	n := sort.Search(len(runes), func(n int) bool { return sty.Width(string(runes[:n])+"…") > width })
	return string(runes[:max(n-1, 0)]) + "…"
}

// height is that of the legend within a width.
func (l legend) height(width vg.Length) vg.Length {
	rows, _ := l.rows(width)
	if rows == nil {
		return 0
	}
	return legendGap + vg.Length(len(rows))*itemRow
}

// draw draws the legend below the top of a canvas, each row in its middle.
func (l legend) draw(c draw.Canvas) {
	sty := legendStyle()
	rows, widths := l.rows(c.Max.X - c.Min.X)
	y := c.Max.Y - legendGap - itemRow/2
	for i, row := range rows {
		x := c.Center().X - widths[i]/2
		for _, it := range row {
			c.StrokeLine2(it.line(), x, y, x+swatch, y)
			if it.marked {
				c.DrawGlyphNoClip(it.marker(), vg.Point{X: x + swatch/2, Y: y})
			}
			x += swatch + swatchGap
			c.FillText(sty, vg.Point{X: x, Y: y}, it.name)
			x += sty.Width(it.name) + itemGap
		}
		y -= itemRow
	}
}
