// SPDX-License-Identifier: Apache-2.0

package fio

import (
	"errors"
	"fmt"
	"strings"
)

// Option is one option and its value, "" where none was given.
type Option struct {
	Name, Value string
	// Where tells where the option was found, for errors; "" is the command line.
	Where string
}

// String is how the option is written in lists.
func (o Option) String() string {
	name := strings.ReplaceAll(o.Name, "-", "_")
	if o.Value == "" {
		return name
	}
	return name + "=" + o.Value
}

func (o Option) errorf(format string, args ...any) error {
	return &optionError{option: o, cause: fmt.Errorf(format, args...)}
}

// optionError says what is wrong with an option. Of a value that has no sense, cause is
// why, and the option and the value are to be named.
type optionError struct {
	option Option
	cause  error
	value  bool
}

func (e *optionError) Error() string {
	text := e.cause.Error()
	if e.value {
		text = fmt.Sprintf("option %s: %q: %s", e.option.Name, e.option.Value, text)
	}
	if e.option.Where != "" {
		text = e.option.Where + ": " + text
	}
	return text
}

// aliases are second names, in canonical spelling.
var aliases = map[string]string{
	"readwrite":                "rw",
	"blocksize":                "bs",
	"timeout":                  "runtime",
	"randseed":                 "seed",
	"iodepth-batch-submit":     "iodepth-batch",
	"iodepth-batch-complete":   "iodepth-batch-complete-min",
	"io-limit":                 "io-size",
	"fileoffset":               "offset",
	"disable-bw-measurement":   "disable-bw",
	"disable-lat-measurement":  "disable-lat",
	"disable-clat-measurement": "disable-clat",
	"disable-slat-measurement": "disable-slat",
}

// Canonical returns the one name of an option that this package uses: with hyphens
// where fio has underscores, and of two names of fio's the shorter.
func Canonical(name string) string {
	name = strings.ReplaceAll(name, "_", "-")
	if other, ok := aliases[name]; ok {
		return other
	}
	return name
}

// ignored are the options that cannot matter here, and whether they may stand without
// a value. What fio's users set for accuracy pollux does in any case: direct I/O,
// random offsets from a seed, clocks that are cheap. Which devices there are is said
// elsewhere.
var ignored = map[string]bool{
	"allow-mounted-write": false,
	"allrandrepeat":       false,
	"buffered":            false,
	"clocksource":         false,
	"description":         false,
	"direct":              false,
	"disable-bw":          false,
	"disable-clat":        false,
	"disable-lat":         false,
	"disable-slat":        false,
	"eta":                 false,
	"eta-newline":         false,
	"filename":            false,
	"group-reporting":     true,
	"gtod-reduce":         false,
	"invalidate":          false,
	"ioengine":            false,
	"nonvectored":         false,
	"norandommap":         true,
	"random-generator":    false,
	"randrepeat":          false,
	"refill-buffers":      true,
	"registerfiles":       true,
	"scramble-buffers":    false,
	"softrandommap":       false,
	"thread":              true,
	"time-based":          true,
}

// Ignored returns the options that are accepted and do nothing, in canonical spelling,
// and whether each may stand without a value.
func Ignored() map[string]bool { return ignored }

// Check says what is wrong with the value of an option that pollux has, without naming
// the option.
func Check(name, value string) error {
	o := Option{Name: name, Value: value}
	if Canonical(name) == "name" {
		if value == "" {
			return errors.New("needs a value")
		}
		return nil
	}
	_, err := (&job{}).set(o)
	var wrong *optionError
	if errors.As(err, &wrong) {
		return wrong.cause
	}
	return err
}

// NeedsNoValue says that an option is one of those that mean 1 when nothing follows. Of
// fio's switches these are few: the others, direct among them, have a value always.
func NeedsNoValue(name string) bool {
	if bare, ok := ignored[name]; ok {
		return bare
	}
	return options[name].bare
}
