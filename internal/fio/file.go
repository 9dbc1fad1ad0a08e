// SPDX-License-Identifier: Apache-2.0

package fio

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// ReadFile returns the options of a job file: each [section] is a name, and after the
// last come defaults again. name is the file's, for errors.
func ReadFile(r io.Reader, name string) ([]Option, error) {
	var list []Option
	sections := 0
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		where := fmt.Sprintf("%s, line %d", name, n)
		line, _, _ := strings.Cut(lines.Text(), "#")
		line, _, _ = strings.Cut(line, ";")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if line[0] == '[' {
			section, ok := strings.CutSuffix(line[1:], "]")
			if section = strings.TrimSpace(section); !ok || section == "" {
				return nil, fmt.Errorf("%s: %q is no section: write [name]", where, line)
			}
			list = append(list, Option{Name: "name", Value: section, Where: where})
			if !strings.HasPrefix(section, global) {
				sections++
			}
			continue
		}
		key, value, hasValue := strings.Cut(line, "=")
		o := Option{Name: strings.TrimSpace(key), Value: strings.TrimSpace(value), Where: where}
		switch {
		case o.Name == "":
			return nil, fmt.Errorf("%s: %q has no option before the =", where, line)
		case len(list) == 0:
			return nil, fmt.Errorf("%s: option %s stands before the first [section]", where, o.Name)
		case Canonical(o.Name) == "name":
			return nil, fmt.Errorf("%s: the name of a job is that of its [section]", where)
		case hasValue && o.Value == "":
			return nil, fmt.Errorf("%s: option %s has no value", where, o.Name)
		}
		list = append(list, o)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if sections == 0 {
		return nil, fmt.Errorf("%s: no job in it: write one as [name]", name)
	}
	return append(list, Option{Name: "name", Value: global, Where: name}), nil
}
