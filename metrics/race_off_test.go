// SPDX-License-Identifier: Apache-2.0

//go:build !race

package metrics

// raceEnabled says whether the race detector is compiled in.
const raceEnabled = false
