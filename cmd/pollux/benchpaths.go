// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"pollux/multipath"
)

// missingPaths tells of controllers of a drive over which it was not opened, "" where
// there are none. A multipath head has all of them itself.
func (d drive) missingPaths() string {
	all := d.info().Paths()
	if d.info().Controller == "" || len(all) <= len(d.paths) {
		return ""
	}
	used := make(map[string]bool)
	for _, p := range d.paths {
		used[p.Info().Controller] = true
	}
	var others []string
	for _, p := range all {
		if !used[p.Controller] {
			others = append(others, fmt.Sprintf("%s (%s %s, %s)", p.Controller, p.Transport, p.Address, p.State))
		}
	}
	return fmt.Sprintf("%s: %d of %d paths to the drive; not used: %s", d.info().Path, len(d.paths), len(all), strings.Join(others, ", "))
}

// addPaths puts into the report what went over the paths of each member.
func (b *benchRun) addPaths() {
	for i, d := range b.vol.drives {
		m, ok := d.device.(*multipath.Multipath)
		if !ok {
			continue
		}
		info := &b.report.Pollux.Members[i]
		info.PathPolicy = m.Policy().String()
		info.AddPaths(m.Stats())
		for j, disk := range d.paths {
			in := disk.Info()
			p := &info.Paths[j]
			p.Controller, p.Transport, p.Address, p.Error = in.Controller, in.Transport, in.Address, oneLine(p.Error)
		}
	}
}
