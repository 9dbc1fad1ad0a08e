// SPDX-License-Identifier: Apache-2.0

// Command pollux measures striped volumes over NVMe drives whose I/O is polled.
package main

import "os"

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
