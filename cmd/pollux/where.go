// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/pflag"

	"pollux/internal/assembly"
	"pollux/internal/superblock"
)

// searchFlags say where volumes are looked for.
type searchFlags struct {
	devices []string
}

// devicesVariable has what --device would, for all commands of a session.
const devicesVariable = "POLLUX_DEVICES"

const searchHelp = `Volumes are looked for on all block devices, and on no file. --device, which may be
repeated, or POLLUX_DEVICES, a list separated by colons, names what is looked at
instead: paths of block devices and files, and quoted shell patterns.`

func (f *searchFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.devices, "device", nil, "look at this device or file, or those that a pattern matches, and at nothing else")
	flags.Lookup("device").DefValue = "" // and not []
}

// where returns where to look.
func (f *searchFlags) where() (assembly.Where, error) {
	devices := f.devices
	for _, d := range devices {
		if d == "" {
			return assembly.Where{}, usageError("--device: the path is empty")
		}
	}
	if len(devices) == 0 {
		for _, d := range strings.Split(os.Getenv(devicesVariable), ":") {
			if d != "" {
				devices = append(devices, d)
			}
		}
	}
	return assembly.Where{Devices: devices}, nil
}

// checkVolume says what is wrong with an argument that is to be the name or UUID
// of a volume.
func checkVolume(s string) error {
	if _, err := uuid.Parse(s); err == nil {
		return nil
	}
	if strings.Contains(s, "/") {
		return usageError(fmt.Sprintf("%q is a path, and the name or UUID of a volume is needed; pollux list shows what there is", s))
	}
	return superblock.CheckName(s)
}

// oneVolume takes the only argument of a command that is about one volume.
func oneVolume(args []string) (string, error) {
	if len(args) != 1 {
		return "", usageError(fmt.Sprintf("name one volume, by its name or UUID; there are %d arguments", len(args)))
	}
	return args[0], checkVolume(args[0])
}
