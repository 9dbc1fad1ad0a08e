// SPDX-License-Identifier: Apache-2.0

//go:build race

package assembly

// raceOn: the race detector makes reading devices a hundred times dearer, and has
// nothing to find in the tests that read most.
const raceOn = true
