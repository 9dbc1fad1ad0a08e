// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestDocumentedKeys: every key and every command is in docs/cli.md.
func TestDocumentedKeys(t *testing.T) {
	data, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	text, keys := string(data), 0
	for _, v := range []any{planJSON{}, listJSON{}, inspectionsJSON{}, destructionJSON{}, versionJSON{}, pagesJSON{}} {
		for _, key := range jsonKeys(reflect.TypeOf(v), nil) {
			keys++
			if !strings.Contains(text, "`"+key+"`") {
				t.Errorf("%T prints the key %q, which docs/cli.md does not have", v, key)
			}
		}
		if first := jsonKeys(reflect.TypeOf(v), nil)[0]; first != "schema_version" {
			t.Errorf("the first key of %T is %q", v, first)
		}
	}
	if keys < 50 {
		t.Errorf("only %d keys were looked for", keys)
	}
	for _, cmd := range newRoot().Commands() {
		if !strings.Contains(text, "`"+cmd.Name()) {
			t.Errorf("docs/cli.md has no %s", cmd.Name())
		}
	}
}

// jsonKeys returns the keys of a type and of all that it holds, in their order.
func jsonKeys(t reflect.Type, keys []string) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return jsonKeys(t.Elem(), keys)
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return keys
		}
		for i := range t.NumField() {
			f := t.Field(i)
			if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" {
				keys = append(keys, key)
			}
			keys = jsonKeys(f.Type, keys)
		}
	}
	return keys
}
