// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"pollux/internal/chart"
)

// JSON returns the Result as N.json has it.
func (r *Result) JSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(r)
	return b.Bytes(), err
}

// Write writes N.json, N.md and N.svg into a folder that exists.
func (r *Result) Write(dir string) error {
	data, err := r.JSON()
	if err != nil {
		return err
	}
	var picture bytes.Buffer
	title, plots := r.Plots()
	if err := chart.Write(&picture, "svg", title, plots...); err != nil {
		return fmt.Errorf("experiment %d: cannot draw: %w", r.Experiment, err)
	}
	for _, f := range []struct {
		ext  string
		data []byte
	}{{"json", data}, {"md", []byte(r.Markdown())}, {"svg", picture.Bytes()}} {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.%s", r.Experiment, f.ext)), f.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
